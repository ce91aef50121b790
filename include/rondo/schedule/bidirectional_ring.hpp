#pragma once

#include <rondo/schedule.hpp>
#include <rondo/schedule/arithmetic.hpp>

#include <string_view>

namespace rondo::inline v0 {

/// A ring on which every chunk takes the short way: half of the ranks reach it, or are reached, clockwise and the other
/// half counter-clockwise, in alternating rounds.
///
/// The volume of the ring, spread over both directions of every link, and no chunk travels further than n/2 hops: half
/// the latency and up to twice the bandwidth of the ring where the two neighbours sit behind different links. The sum
/// of a chunk joins two runs at its owner, so its tree depends on the chunk. The all-gather is the well-known neighbour
/// flooding; the reduce-scatter is the same backwards in time.
struct bidirectional_ring {
  static constexpr std::string_view name = "bidirectional_ring";

  /// n - 1 rounds, (n - 1)/n of the buffer sent by each rank, half of it to each side.
  struct all_gather {
    int n;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return n; }
    RONDO_HD constexpr int rounds() const noexcept { return n - 1; }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      int const side = i % 2 == 0 ? 1 : -1;
      int const hops = i / 2 * side;
      return {.to = detail::wrap(r + side, n),
              .out = {detail::wrap(r - hops, n), 1},
              .from = detail::wrap(r - side, n),
              .in = {detail::wrap(r - side - hops, n), 1}};
    }
  };

  /// n - 1 rounds, (n - 1)/n of the buffer sent by each rank, half of it to each side.
  struct reduce_scatter {
    int n;

    static constexpr bool keeps_rank_order = false;
    static constexpr bool uniform_tree = false;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return n; }
    RONDO_HD constexpr int rounds() const noexcept { return n - 1; }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      step s = detail::backwards(all_gather{n}.at(r, n - 2 - i), merge::fold);
      s.completes = i == n - 2;
      return s;
    }
  };

  /// reduce_scatter, then all_gather: 2(n - 1) rounds, 2(n - 1)/n of the buffer sent by each rank.
  struct all_reduce {
    int n;

    static constexpr bool keeps_rank_order = false;
    static constexpr bool uniform_tree = false;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return n; }
    RONDO_HD constexpr int rounds() const noexcept { return 2 * (n - 1); }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      int const half = n - 1;
      return i < half ? reduce_scatter{n}.at(r, i) : all_gather{n}.at(r, i - half);
    }
  };
};

}  // namespace rondo::inline v0
