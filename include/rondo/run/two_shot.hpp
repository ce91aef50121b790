#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/run/boards.hpp>
#include <rondo/run/flight.hpp>
#include <rondo/run/greeting.hpp>
#include <rondo/run/job.hpp>
#include <rondo/run/mapped.hpp>
#include <rondo/run/marks.hpp>
#include <rondo/run/staged.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <variant>

namespace rondo::inline v0::run {

/// A large all-reduce in two hops through shared memory: every rank owns a slice, folds the contributions of all ranks
/// to it in one pass, and pushes the result to everybody.
///
/// A native algorithm: the memory model of the machine is what makes it fast, so there is no schedule of it. What an
/// owner computes is copied as bytes, and its tree is the canonical one, so the bits are those of recursive_doubling,
/// whatever the size. The arrangement is the two-shot (reduce-scatter, all-gather) of shared-memory collectives, with
/// the owner writing: lines that a peer wrote last are cheaper to write than lines that it read last.
///
/// Where the buffers of all ranks are registered, the owners use them in place (mapped); else the data passes through
/// windows on the boards (staged). A letter says which it is.
template <addressable X>
class two_shot final : public flight_base {
 public:
  /// Is there room on the boards for elements of this size?
  static bool fits(boards const& shared, std::size_t element) noexcept {
    return shared && shared.slice_bytes() >= element;
  }

  two_shot(X& transport, job& work, workspace& memory)
      : transport_(transport), job_(work), memory_(memory), greeting_(transport, memory.shared, work.mark),
        marks_(transport, work.mark, memory), windows_(memory.shared, work) {}

  bool poll() override {
    bool moved = false;
    if (!greeting_.sent()) {
      greet();
      moved = true;
    }
    bool const greeted = greeting_.arrived();
    if (way_.index() == 0 && (greeted || !registered_)) choose(greeted);
    if (auto* const through = std::get_if<staged<X>>(&way_)) return through->poll(greeted) || moved;
    if (auto* const straight = std::get_if<mapped<X>>(&way_)) return straight->poll() || moved;
    return moved;
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

  std::optional<disagreement> const& mismatch() const noexcept override {
    return greeting_.mismatch() ? greeting_.mismatch() : marks_.mismatch();
  }
  void look_around() override { marks_.look_around(); }
  job& work() noexcept override { return job_; }

 private:
  /// What a letter says about the buffers of its rank.
  struct buffers {
    std::uint64_t registered, source, home;  // 1 or 0; their places in registered memory
  };

  void greet() {
    auto const& memory = memory_.shared.registered();
    std::size_t const bytes = job_.count * job_.math.element;
    auto const source = memory->place_of(job_.source, bytes), home = memory->place_of(job_.home, bytes);
    registered_ = source && home;
    buffers const mine{registered_, source.value_or(0), home.value_or(0)};
    greeting_.send([&](rank_t, letter& text) { std::memcpy(text.text.data(), &mine, sizeof mine); });
  }

  /// Ranks may decide at different times, but all of them decide alike.
  void choose(bool greeted) {
    bool straight = registered_;
    mapped_buffers all(memory_.shared.size());
    for (rank_t q = 0; straight && greeted && q < memory_.shared.size(); ++q) {
      if (q == memory_.shared.rank()) {
        all.set(q, job_.source, job_.home);
        continue;
      }
      buffers theirs;
      std::memcpy(&theirs, memory_.shared.letter_from(q, greeting_.call()).text.data(), sizeof theirs);
      straight = theirs.registered != 0;
      auto const& memory = memory_.shared.registered();
      if (straight) all.set(q, memory->at(q, theirs.source), memory->at(q, theirs.home));
    }
    if (straight)
      way_.template emplace<mapped<X>>(transport_, memory_, job_, windows_, std::move(all));
    else
      way_.template emplace<staged<X>>(transport_, memory_, job_, windows_);
  }

  X& transport_;
  job& job_;
  workspace& memory_;
  greeting<X> greeting_;
  marks<X> marks_;  // for looking around only: the fingerprints of this call are in the letters
  window_range windows_;
  bool registered_ = false;  // this rank's buffers
  std::variant<std::monostate, staged<X>, mapped<X>> way_;
};

}  // namespace rondo::inline v0::run
