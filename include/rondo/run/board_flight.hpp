#pragma once

#include <rondo/run/all_offers.hpp>
#include <rondo/run/boards.hpp>
#include <rondo/run/flight.hpp>
#include <rondo/run/greeting.hpp>
#include <rondo/run/job.hpp>
#include <rondo/run/mapped.hpp>
#include <rondo/run/marks.hpp>
#include <rondo/run/staged.hpp>

#include <cstddef>
#include <cstring>
#include <optional>
#include <variant>

namespace rondo::inline v0::run {

/// An all-reduce through memory that all ranks share, of more than letter_flight takes.
///
/// A native algorithm: the memory model of the machine is what makes it fast, so there is no schedule of it. In both
/// ways the ranks' contributions are folded in the canonical tree, so the bits are those of recursive_doubling,
/// whatever the size and the buffers: on the buffers themselves, if those of all ranks are registered (mapped), else
/// through windows (staged).
///
/// Either is the two-shot (reduce-scatter, all-gather) of shared-memory collectives with the owner of a slice writing:
/// lines that a peer wrote last are cheaper to write than lines that it read last.
template <addressable X>
class board_flight final : public flight_base {
 public:
  /// Is there room on the boards for elements of this size?
  static bool fits(boards const& shared, std::size_t element) noexcept {
    return shared && shared.slice_bytes() >= element;
  }

  board_flight(X& transport, job& work, workspace& memory)
      : transport_(transport), job_(work), memory_(memory), shared_(memory.shared),
        greeting_(transport, memory, work.mark), windows_(shared_, work) {}

  bool poll() override {
    if (!greeting_.sent()) {
      greet();
      return true;
    }
    bool const greeted = greeting_.arrived();
    if (std::holds_alternative<std::monostate>(way_)) {
      if (mine_.how == passage::windows)
        way_.template emplace<staged<X>>(transport_, memory_, job_, windows_);
      else if (greeted)
        choose();
      else
        return false;
    }
    if (auto* const through = std::get_if<staged<X>>(&way_)) return through->poll(greeted);
    if (auto* const straight = std::get_if<mapped<X>>(&way_)) return straight->poll();
    return false;
  }

  bool done() const noexcept override {
    if (auto const* const through = std::get_if<staged<X>>(&way_)) return through->done();
    if (auto const* const straight = std::get_if<mapped<X>>(&way_)) return straight->done();
    return false;
  }

  rank_t waiting_for() const noexcept override {
    if (auto const* const through = std::get_if<staged<X>>(&way_)) return through->waiting_for();
    if (auto const* const straight = std::get_if<mapped<X>>(&way_)) return straight->waiting_for();
    return greeting_.waiting_for();
  }

  std::optional<disagreement> const& mismatch() const noexcept override { return greeting_.mismatch(); }
  void look_around() override { greeting_.look_around(); }
  job& work() noexcept override { return job_; }

 private:
  void greet() {
    mine_ = describe_buffers();
    greeting_.send([this](rank_t, letter& l) { std::memcpy(l.text.data(), &mine_, sizeof mine_); });
  }

  offer describe_buffers() const {
    std::size_t const bytes = job_.count * job_.math.element;
    auto const& memory = shared_.registered();
    auto const source = memory->place_of(job_.source, bytes), home = memory->place_of(job_.home, bytes);
    if (source && home) return {passage::registered, *source, *home};
    return {};
  }

  /// All letters are here.
  void choose() {
    all_offers all(shared_, greeting_.call(), mine_, job_.source, job_.home);
    if (all.all_registered())
      way_.template emplace<mapped<X>>(transport_, memory_, job_, windows_, all.buffers());
    else
      way_.template emplace<staged<X>>(transport_, memory_, job_, windows_);
  }

  X& transport_;
  job& job_;
  workspace& memory_;
  boards& shared_;
  greeting<X> greeting_;
  window_range windows_;
  offer mine_;
  std::variant<std::monostate, staged<X>, mapped<X>> way_;
};

}  // namespace rondo::inline v0::run
