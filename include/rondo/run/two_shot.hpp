#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/fingerprint.hpp>
#include <rondo/memory.hpp>
#include <rondo/run/board_marks.hpp>
#include <rondo/run/canonical_fold.hpp>
#include <rondo/run/flight.hpp>
#include <rondo/run/job.hpp>
#include <rondo/run/marks.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <optional>
#include <vector>

namespace rondo::inline v0::run {

/// An all-reduce in two hops through shared memory: every rank copies to the owner of a slice what it contributes to
/// it, the owner folds all contributions in one pass and copies the result to everybody.
///
/// A native algorithm: the memory model of the machine is what makes it fast, so there is no schedule of it. The buffer
/// passes through windows on the boards, depth() of them in flight; a window costs three flags per pair of ranks and no
/// barrier. What an owner computes is copied as bytes, and its tree is the canonical one, so the bits are those of
/// recursive_doubling, whatever the size. The arrangement is the two-shot (reduce-scatter, all-gather) of shared-memory
/// collectives, with the owner writing: lines that a peer wrote last are cheaper to write than lines that it read last.
template <addressable X>
class two_shot final : public flight_base {
 public:
  /// Is there room on the boards for elements of this size?
  static bool fits(X const& transport, std::size_t element) { return layout(transport, element).slice != 0; }

  two_shot(X& transport, job& work, workspace& memory)
      : transport_(transport), job_(work), fold_(work.math), at_(layout(transport, work.math.element)),
        marks_(transport, work.mark, memory), base_(memory.windows), call_(memory.board_calls++) {
    std::size_t const room = at_.slice * ranks();  // elements of a window
    windows_ = std::max<std::size_t>(1, (work.count + room - 1) / room);
    std::size_t const share = (work.count + windows_ * ranks() - 1) / (windows_ * ranks());
    slice_ = (share + at_.grain - 1) / at_.grain * at_.grain;  // even windows, that begin on cache lines
    memory.windows += windows_;
    sources_.resize(ranks());
  }

  bool done() const noexcept override { return taken_ == windows_; }
  rank_t waiting_for() const noexcept override { return awaited_; }
  std::optional<disagreement> const& mismatch() const noexcept override {
    return mismatch_ ? mismatch_ : marks_.mismatch();
  }
  void look_around() override { marks_.look_around(); }
  job& work() noexcept override { return job_; }

  bool poll() override {
    bool moved = false;
    for (bool again = true; again && !mismatch_;) {
      again = false;
      if (sent_ < windows_ && room_for(sent_)) send(sent_++), again = true;
      if (folded_ < sent_ && raised(arrival, folded_) && greeted()) fold(folded_++), again = true;
      if (taken_ < folded_ && raised(result, taken_)) take(taken_++), again = true;
      moved = moved || again;
    }
    return moved;
  }

 private:
  /// The parts of a board: fingerprints of two calls, then `depth` windows of contributions and as many of results,
  /// each with one slice per rank.
  struct plan {
    std::size_t grain;  ///< elements of a cache line, or 1
    std::size_t slice;  ///< elements
    std::size_t marks_bytes, slice_bytes;
  };
  static constexpr std::size_t depth = 4;

  static plan layout(X const& transport, std::size_t element) {
    auto const n = static_cast<std::size_t>(transport.size());
    std::size_t const grain = std::max<std::size_t>(1, 64 / element);
    std::size_t const marks_bytes = board_marks_bytes(transport.size());
    std::size_t const bytes = (transport.board(0).size() - marks_bytes) / (2 * depth * n);
    std::size_t const slice = bytes / (grain * element) * grain;
    return {grain, slice, marks_bytes, slice * element};
  }

  std::size_t ranks() const noexcept { return static_cast<std::size_t>(transport_.size()); }
  std::size_t me() const noexcept { return static_cast<std::size_t>(transport_.rank()); }

  std::byte* contribution(std::size_t owner, std::size_t from, std::size_t window) const {
    return place(owner, from, (base_ + window) % depth);
  }
  std::byte* outcome(std::size_t at, std::size_t owner, std::size_t window) const {
    return place(at, owner, depth + (base_ + window) % depth);
  }
  std::byte* place(std::size_t board, std::size_t q, std::size_t slot) const {
    return transport_.board(static_cast<rank_t>(board)).data() + at_.marks_bytes +
           (slot * ranks() + q) * at_.slice_bytes;
  }

  /// Where slice `owner` of a window begins, in elements, and how many it has.
  std::size_t first(std::size_t window, std::size_t owner) const noexcept {
    return std::min(job_.count, (window * ranks() + owner) * slice_);
  }
  std::size_t count(std::size_t window, std::size_t owner) const noexcept {
    return std::min(job_.count, (window * ranks() + owner + 1) * slice_) - first(window, owner);
  }
  std::size_t bytes(std::size_t elements) const noexcept { return elements * job_.math.element; }

  bool raised(window_signal what, std::size_t window) {
    for (rank_t q = 0; q < transport_.size(); ++q)
      if (q != transport_.rank() &&
          transport_.flag(transport_.rank(), q, what).load(std::memory_order_acquire) < base_ + window + 1) {
        awaited_ = q;
        return false;
      }
    return true;
  }

  void raise(rank_t q, window_signal what, std::size_t window) {
    transport_.flag(q, transport_.rank(), what).store(base_ + window + 1, std::memory_order_release);
    transport_.notify(q);
  }

  /// Every rank has emptied the window that this one's memory was used for last.
  bool room_for(std::size_t window) { return base_ + window < depth || raised(credit, window - depth); }

  /// Begins with the next rank, so that not all ranks write to the same one.
  template <class F>
  void each_other(F&& f) const {
    for (std::size_t i = 1; i < ranks(); ++i) f((me() + i) % ranks());
  }

  void send(std::size_t window) {
    each_other([&](std::size_t owner) {
      if (window == 0) board_mark(transport_, static_cast<rank_t>(owner), transport_.rank(), call_) = job_.mark;
      std::size_t const n = bytes(count(window, owner));
      if (n != 0) std::memcpy(contribution(owner, me(), window), job_.source + bytes(first(window, owner)), n);
      raise(static_cast<rank_t>(owner), arrival, window);
    });
  }

  /// With the first window come the fingerprints of all ranks.
  bool greeted() {
    if (folded_ != 0) return true;
    for (rank_t q = 0; q < transport_.size(); ++q) {
      if (q == transport_.rank()) continue;
      fingerprint const& theirs = board_mark(transport_, transport_.rank(), q, call_);
      if (theirs == job_.mark) continue;
      mismatch_ = disagreement{q, job_.mark, theirs};
      return false;
    }
    return true;
  }

  void fold(std::size_t window) {
    std::byte const* const own = job_.source + bytes(first(window, me()));
    std::byte* const home = job_.home + bytes(first(window, me()));
    std::size_t const all = count(window, me());
    for (std::size_t i = 0; i < all; i += fold_.block()) {
      std::size_t const n = std::min(fold_.block(), all - i), offset = bytes(i);
      for (std::size_t q = 0; q < ranks(); ++q)
        sources_[q] = (q == me() ? own : contribution(me(), q, window)) + offset;
      fold_(sources_, home + offset, n);
      each_other([&](std::size_t q) { std::memcpy(outcome(q, me(), window) + offset, home + offset, bytes(n)); });
    }
    each_other([&](std::size_t q) { raise(static_cast<rank_t>(q), result, window); });
  }

  void take(std::size_t window) {
    each_other([&](std::size_t owner) {
      std::size_t const n = bytes(count(window, owner));
      if (n != 0) std::memcpy(job_.home + bytes(first(window, owner)), outcome(me(), owner, window), n);
    });
    each_other([&](std::size_t q) { raise(static_cast<rank_t>(q), credit, window); });
  }

  X& transport_;
  job& job_;
  canonical_fold fold_;
  plan at_;
  marks<X> marks_;  // for looking around only: fingerprints of this call lie on the boards
  std::uint64_t base_;
  std::uint64_t call_;
  std::size_t windows_ = 0, slice_ = 0;
  std::size_t sent_ = 0, folded_ = 0, taken_ = 0;
  rank_t awaited_ = nobody;
  std::vector<std::byte const*> sources_;
  std::optional<disagreement> mismatch_;
};

}  // namespace rondo::inline v0::run
