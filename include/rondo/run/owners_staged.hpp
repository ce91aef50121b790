#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/run/boards.hpp>
#include <rondo/run/marks.hpp>
#include <rondo/run/owners_block.hpp>
#include <rondo/run/signals.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rondo::inline v0::run {

/// The windows through which the elements of owners pass: how many, and how many elements of each owner one takes. All
/// ranks reckon alike.
struct owners_windows {
  owners_windows(boards& shared, owned_work const& work) : base(shared.windows) {
    std::size_t const room = shared.slice_bytes() / std::max(work.contribution, work.result);
    slice = std::clamp<std::size_t>(work.largest(), 1, room < 64 ? room : room / 64 * 64);
    count = std::max<std::size_t>(1, (work.largest() + slice - 1) / slice);
    shared.windows += count;
  }

  std::uint64_t base;  ///< windows of earlier calls
  std::size_t count;
  std::size_t slice;  ///< elements

  std::uint64_t end() const noexcept { return base + count; }
};

/// The work of owners whose data passes through windows on the boards: every rank copies what it contributes to the
/// owner's board, and takes results from its own board. Flow control is that of staged.
template <addressable X>
class owners_staged {
 public:
  /// All ranks have entered the call.
  owners_staged(X& transport, workspace& memory, owned_work const& work, owners_windows const& windows)
      : shared_(memory.shared), work_(work), memory_(memory), block_(work, memory), signals_(transport, memory.shared),
        windows_(windows) {}

  bool done() const noexcept { return taken_ == windows_.count; }
  rank_t waiting_for() const noexcept { return signals_.awaited(); }

  bool poll() {
    bool moved = false;
    for (bool again = true; again;) {
      again = false;
      if (sent_ < windows_.count && room_for(sent_)) send(sent_++), again = true;
      if (made_ < sent_ && (work_.contribution == 0 || signals_.raised(signal::arrival, after(made_))))
        make(made_++), again = true;
      if (taken_ < made_ && (!work_.to_all || signals_.raised(signal::result, after(taken_))))
        take(taken_++), again = true;
      moved = moved || again;
    }
    return moved;
  }

 private:
  std::uint64_t number(std::size_t window) const noexcept { return windows_.base + window; }
  std::uint64_t after(std::size_t window) const noexcept { return number(window) + 1; }

  /// The elements of `owner` that pass through a window: where they begin among its own, and how many.
  std::size_t begin(std::size_t window, rank_t owner) const noexcept {
    return std::min(work_.count(owner), window * windows_.slice);
  }
  std::size_t count(std::size_t window, rank_t owner) const noexcept {
    return begin(window + 1, owner) - begin(window, owner);
  }

  std::byte* contribution(rank_t owner, rank_t q, std::size_t window) const noexcept {
    return shared_.contribution(owner, q, number(window), windows_.slice * work_.contribution);
  }
  std::byte* outcome(rank_t owner, rank_t q, std::size_t window) const noexcept {
    return shared_.outcome(owner, q, number(window), windows_.slice * work_.result);
  }

  /// Every rank has emptied the window that this one's memory was used for last.
  bool room_for(std::size_t window) {
    return number(window) < boards::depth || signals_.raised(signal::credit, after(window) - boards::depth);
  }

  void send(std::size_t window) {
    if (work_.contribution == 0) return;
    signals_.each_other([&](rank_t owner) {
      if (std::size_t const n = count(window, owner); n != 0)
        std::memcpy(contribution(owner, shared_.rank(), window),
                    work_.source + (work_.begin(owner) + begin(window, owner)) * work_.contribution,
                    n * work_.contribution);
      signals_.raise(owner, signal::arrival, after(window));
    });
  }

  void make(std::size_t window) {
    rank_t const me = shared_.rank();
    std::size_t const first = begin(window, me), last = first + count(window, me);
    for (std::size_t at = first; at < last; at += work_.block) {
      std::size_t const place = work_.begin(me) + at, offset = at - first;
      for (rank_t q = 0; q < shared_.size(); ++q) {
        if (work_.contribution != 0)
          detail::by_rank(memory_.sources, q) = q == me ? work_.source + place * work_.contribution
                                                        : contribution(me, q, window) + offset * work_.contribution;
        if (work_.to_all)
          detail::by_rank(memory_.outs, q) =
              q == me ? work_.home + place * work_.result : outcome(q, me, window) + offset * work_.result;
      }
      block_.make(at, std::min(last - at, work_.block), memory_.outs);
    }
    if (work_.to_all) signals_.raise(signal::result, after(window));
  }

  void take(std::size_t window) {
    if (work_.to_all)
      signals_.each_other([&](rank_t owner) {
        if (std::size_t const n = count(window, owner); n != 0)
          std::memcpy(work_.home + (work_.begin(owner) + begin(window, owner)) * work_.result,
                      outcome(shared_.rank(), owner, window), n * work_.result);
      });
    signals_.raise(signal::credit, after(window));
  }

  boards const& shared_;
  owned_work const& work_;
  workspace& memory_;
  owners_block block_;
  signals<X> signals_;
  owners_windows windows_;
  std::size_t sent_ = 0, made_ = 0, taken_ = 0;
};

}  // namespace rondo::inline v0::run
