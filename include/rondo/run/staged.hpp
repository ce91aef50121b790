#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/run/boards.hpp>
#include <rondo/run/canonical_fold.hpp>
#include <rondo/run/job.hpp>
#include <rondo/run/marks.hpp>
#include <rondo/run/signals.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rondo::inline v0::run {

/// The windows through which a call passes: how many, and how many elements of each belong to one rank. All ranks
/// reckon alike.
struct window_range {
  window_range(boards& shared, job const& work) : base(shared.windows) {
    auto const ranks = static_cast<std::size_t>(shared.size());
    std::size_t const grain = work.math.grain();
    bool const from_memory = work.count * work.math.element >= cached_bytes;
    std::size_t const bytes = from_memory ? std::min(shared.slice_bytes(), near_bytes / ranks) : shared.slice_bytes();
    std::size_t const most = bytes / work.math.element / grain * grain;
    std::size_t const room = std::max<std::size_t>(1, most == 0 ? shared.slice_bytes() / work.math.element : most);
    ahead = from_memory ? 1 : boards::depth;
    count = std::max<std::size_t>(1, (work.count + room * ranks - 1) / (room * ranks));
    std::size_t const share = (work.count + count * ranks - 1) / (count * ranks);
    slice = std::min(room, (share + grain - 1) / grain * grain);  // even windows, that begin on cache lines
    shared.windows += count;
  }

  std::uint64_t base;  ///< windows of earlier calls
  std::size_t count;
  std::size_t slice;  ///< elements
  std::size_t ahead;  ///< windows that are sent before the first of them is folded

 private:
  /// Buffers of so many bytes come from memory and go back to it. Every line should make that way once: a window should
  /// still be in a core's own cache when its results are taken, so windows are small, and not sent ahead. Smaller
  /// buffers stay in the cache that cores share, and lines pass the faster from one core to the other the longer ago
  /// they left the first one's own.
  static constexpr std::size_t cached_bytes = std::size_t{16} << 20;
  static constexpr std::size_t near_bytes = std::size_t{256} << 10;  // of a rank's buffer in a window
};

/// A two-shot whose data passes through windows on the boards: every rank copies to the owner of a slice what it
/// contributes to it, and takes the results from where that was. The owner has just read those lines, so that to write
/// them costs less than to write others; and the window is free again for the next one as soon as it has been taken.
///
/// Up to depth windows are in flight; each costs three flags per pair of ranks and no barrier.
template <addressable X>
class staged {
 public:
  staged(X& transport, workspace& memory, job& work, window_range const& windows)
      : shared_(memory.shared), job_(work), memory_(memory), fold_(work.math, memory.block),
        signals_(transport, memory.shared), windows_(windows) {}

  bool done() const noexcept { return taken_ == windows_.count; }
  rank_t waiting_for() const noexcept { return signals_.awaited(); }

  /// `greeted`: all ranks are known to be in the same call; nothing is folded before.
  bool poll(bool greeted) {
    bool moved = false;
    for (bool again = true; again;) {
      again = false;
      if (sent_ < windows_.count && sent_ < folded_ + windows_.ahead && room_for(sent_)) send(sent_++), again = true;
      if (folded_ < sent_ && greeted && signals_.raised(signal::arrival, after(folded_))) fold(folded_++), again = true;
      if (taken_ < folded_ && signals_.raised(signal::result, after(taken_))) take(taken_++), again = true;
      moved = moved || again;
    }
    return moved;
  }

 private:
  std::uint64_t number(std::size_t window) const noexcept { return windows_.base + window; }
  std::uint64_t after(std::size_t window) const noexcept { return number(window) + 1; }

  /// Where slice `owner` of a window begins, in elements, and its bytes.
  std::size_t first(std::size_t window, rank_t owner) const noexcept {
    auto const slices = static_cast<std::size_t>(shared_.size());
    return std::min(job_.count, (window * slices + static_cast<std::size_t>(owner)) * windows_.slice);
  }
  std::size_t count(std::size_t window, rank_t owner) const noexcept {
    return first(window, owner + 1) - first(window, owner);
  }
  std::size_t bytes(std::size_t elements) const noexcept { return elements * job_.math.element; }
  std::byte* contribution(rank_t owner, rank_t q, std::size_t window) const noexcept {
    return shared_.contribution(owner, q, number(window), bytes(windows_.slice));
  }

  /// The window that used this one's memory last is empty: it was taken, or every rank has emptied those of earlier
  /// calls.
  bool room_for(std::size_t window) {
    if (window >= boards::depth) return taken_ + boards::depth > window;
    return number(window) < boards::depth || signals_.raised(signal::credit, after(window) - boards::depth);
  }

  void send(std::size_t window) {
    signals_.each_other([&](rank_t owner) {
      std::size_t const n = bytes(count(window, owner));
      if (n != 0)
        std::memcpy(contribution(owner, shared_.rank(), window), job_.source + bytes(first(window, owner)), n);
      signals_.raise(owner, signal::arrival, after(window));
    });
  }

  void fold(std::size_t window) {
    rank_t const me = shared_.rank();
    std::size_t const own = bytes(first(window, me));
    auto out = memory_.outs.begin();
    *out++ = job_.home + own;
    for (rank_t q = 0; q < shared_.size(); ++q) {
      if (q == me)
        detail::by_rank(memory_.sources, q) = job_.source + own;
      else
        detail::by_rank(memory_.sources, q) = *out++ = contribution(me, q, window);
    }
    fold_(memory_.sources, memory_.outs, count(window, me));
    signals_.raise(signal::result, after(window));
  }

  void take(std::size_t window) {
    signals_.each_other([&](rank_t owner) {
      std::size_t const n = bytes(count(window, owner));
      if (n != 0) std::memcpy(job_.home + bytes(first(window, owner)), contribution(owner, shared_.rank(), window), n);
    });
    signals_.raise(signal::credit, after(window));
  }

  boards const& shared_;
  job& job_;
  workspace& memory_;
  canonical_fold fold_;
  signals<X> signals_;
  window_range windows_;
  std::size_t sent_ = 0, folded_ = 0, taken_ = 0;
};

}  // namespace rondo::inline v0::run
