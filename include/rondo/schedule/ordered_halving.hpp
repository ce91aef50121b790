#pragma once

#include <rondo/schedule.hpp>
#include <rondo/schedule/arithmetic.hpp>

#include <bit>
#include <string_view>

namespace rondo::inline v0 {

/// Halving with the nearest partner first: optimal volume in log2 n rounds a phase and the canonical tree, n = 2^k.
///
/// Partners are 1, 2, 4, … ranks apart, each keeps one half of what both held, and the one with the lower number puts
/// its operand first; so every chunk is summed like the whole buffer in recursive doubling. The largest messages travel
/// to neighbours. The chunk that a rank ends with has the number of the rank with its bits reversed. Rabenseifner,
/// Optimization of collective reduction operations, ICCS 2004, with distance doubling instead of halving.
struct ordered_halving {
  static constexpr std::string_view name = "ordered_halving";

  /// Powers of two only.
  static constexpr bool valid(int n) noexcept { return n > 0 && std::has_single_bit(static_cast<unsigned>(n)); }

  /// 2 log2 n rounds, 2(n - 1)/n of the buffer sent by each rank.
  struct all_reduce {
    int n;

    static constexpr bool keeps_rank_order = true;
    static constexpr bool uniform_tree = true;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return n; }
    RONDO_HD constexpr int rounds() const noexcept { return 2 * detail::ceil_log2(n); }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      return i < detail::ceil_log2(n) ? halve(n, r, i)
                                      : detail::backwards(halve(n, r, rounds() - 1 - i), merge::overwrite);
    }
  };

  /// log2 n rounds and one more that brings each chunk to the rank of its number; 1/n of the buffer on top of the
  /// optimal (n - 1)/n.
  struct reduce_scatter {
    int n;

    static constexpr bool keeps_rank_order = true;
    static constexpr bool uniform_tree = true;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return n; }
    RONDO_HD constexpr int rounds() const noexcept { return detail::ceil_log2(n) + (n > 2); }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      if (i < detail::ceil_log2(n)) return halve(n, r, i);
      rank_t const peer = reversed(n, r);
      return peer == r ? step{} : step{.to = peer, .out = {peer, 1}, .from = peer, .in = {r, 1}};
    }
  };

 private:
  /// The log2 n bits of r in the opposite order.
  RONDO_HD static constexpr int reversed(int n, rank_t r) noexcept {
    int bits = 0;
    for (int high = n / 2; high > 0; high /= 2, r /= 2) bits += r % 2 * high;
    return bits;
  }

  RONDO_HD static constexpr step halve(int n, rank_t r, int i) noexcept {
    int const half = n >> (i + 1);
    int const mine = reversed(n, r) & -half;
    rank_t const peer = r ^ (1 << i);
    return {.to = peer,
            .out = {mine ^ half, half},
            .from = peer,
            .in = {mine, half},
            .how = peer < r ? merge::fold_front : merge::fold,
            .completes = half == 1};
  }
};

}  // namespace rondo::inline v0
