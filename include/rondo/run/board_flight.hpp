#pragma once

#include <rondo/run/all_offers.hpp>
#include <rondo/run/boards.hpp>
#include <rondo/run/enclosures.hpp>
#include <rondo/run/flight.hpp>
#include <rondo/run/greeting.hpp>
#include <rondo/run/job.hpp>
#include <rondo/run/mapped.hpp>
#include <rondo/run/marks.hpp>
#include <rondo/run/staged.hpp>

#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <variant>

namespace rondo::inline v0::run {

/// An all-reduce through memory that all ranks share.
///
/// A native algorithm: the memory model of the machine is what makes it fast, so there is no schedule of it. In every
/// way the ranks' contributions are folded in the canonical tree, so the bits are those of recursive_doubling, whatever
/// the size and the buffers:
///
///  - in one hop, if all that a rank contributes travels with its letters (one-shot): up to the size of a slot when its
///    buffer is not registered; what is very small always does, see letter_flight;
///  - in two hops on the buffers themselves, if those of all ranks are registered (mapped);
///  - else in two hops through windows (staged).
///
/// The two-hop ways are the two-shot (reduce-scatter, all-gather) of shared-memory collectives with the owner of a
/// slice writing: lines that a peer wrote last are cheaper to write than lines that it read last.
template <addressable X>
class board_flight final : public flight_base {
 public:
  /// Is there room on the boards for elements of this size?
  static bool fits(boards const& shared, std::size_t element) noexcept {
    return shared && shared.slice_bytes() >= element;
  }

  board_flight(X& transport, job& work, workspace& memory)
      : transport_(transport), job_(work), memory_(memory), shared_(memory.shared),
        greeting_(transport, memory, work.mark), enclosed_(shared_, greeting_.call(), work), windows_(shared_, work) {}

  bool poll() override {
    if (!greeting_.sent()) {
      greet();
      return true;
    }
    bool const greeted = greeting_.arrived();
    if (std::holds_alternative<undecided>(way_)) {
      if (mine_.how == passage::windows)
        way_.template emplace<staged<X>>(transport_, memory_, job_, windows_);
      else if (greeted)
        choose();
      else
        return false;
    }
    if (auto* const through = std::get_if<staged<X>>(&way_)) return through->poll(greeted);
    if (auto* const straight = std::get_if<mapped<X>>(&way_)) return straight->poll();
    return std::exchange(moved_, false);
  }

  bool done() const noexcept override {
    if (auto const* const through = std::get_if<staged<X>>(&way_)) return through->done();
    if (auto const* const straight = std::get_if<mapped<X>>(&way_)) return straight->done();
    return std::holds_alternative<one_hop>(way_);
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
  struct undecided {};
  struct one_hop {};  // all is done

  void greet() {
    mine_ = describe_buffers();
    greeting_.send([this](rank_t q, letter& l) {
      if (mine_.how == passage::letter) enclosed_.put(q, l);
      std::memcpy(l.text.data(), &mine_, sizeof mine_);
    });
  }

  offer describe_buffers() const {
    std::size_t const bytes = job_.count * job_.math.element;
    auto const& memory = shared_.registered();
    auto const source = memory->place_of(job_.source, bytes), home = memory->place_of(job_.home, bytes);
    if (source && home) return {passage::registered, *source, *home};
    return {.how = bytes <= shared_.slot_bytes() ? passage::letter : passage::windows};
  }

  /// All letters are here.
  void choose() {
    all_offers all(shared_, greeting_.call(), mine_, job_.source, job_.home);
    if (all.all_registered())
      way_.template emplace<mapped<X>>(transport_, memory_, job_, windows_, all.buffers());
    else if (all.all_letters())
      fold_letters();
    else
      way_.template emplace<staged<X>>(transport_, memory_, job_, windows_);
  }

  void fold_letters() {
    enclosed_.fold(memory_);
    shared_.free_windows(windows_.base + windows_.count);
    way_.template emplace<one_hop>();
    moved_ = true;
  }

  X& transport_;
  job& job_;
  workspace& memory_;
  boards& shared_;
  greeting<X> greeting_;
  enclosures enclosed_;
  window_range windows_;
  offer mine_;
  bool moved_ = false;
  std::variant<undecided, one_hop, staged<X>, mapped<X>> way_;
};

}  // namespace rondo::inline v0::run
