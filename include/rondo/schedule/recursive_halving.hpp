#pragma once

#include <rondo/schedule.hpp>
#include <rondo/schedule/arithmetic.hpp>

#include <string_view>

namespace rondo::inline v0 {

/// Halving on a circle: optimal volume in ceil(log2 n) rounds a phase, for every n, without folding ranks away.
///
/// The distances are s_k = ceil(n / 2^k). In round k a rank sends the partial sums of the chunks s_(k+1) … s_k - 1
/// places to its right to the rank s_(k+1) places to its right, where they are needed 0 … places further on; so every
/// contribution to chunk c walks to rank c, and is folded once at each stop. Träff, Optimal, non-pipelined
/// reduce-scatter and allreduce algorithms, arXiv 2410.14234, 2024. The tree is the same for every chunk only if n is a
/// power of two, and then it is ((0 + 4) + (2 + 6)) + …, which is not the canonical one: see ordered_halving.
struct recursive_halving {
  static constexpr std::string_view name = "recursive_halving";

  /// ceil(log2 n) rounds, (n - 1)/n of the buffer sent by each rank.
  struct reduce_scatter {
    int n;

    static constexpr bool keeps_rank_order = false;
    static constexpr bool uniform_tree = false;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return n; }
    RONDO_HD constexpr int rounds() const noexcept { return detail::ceil_log2(n); }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      int const distance = skip(i + 1);
      int const moved = skip(i) - distance;
      rank_t const to = detail::wrap(r + distance, n);
      return {.to = to,
              .out = {to, moved},
              .from = detail::wrap(r - distance, n),
              .in = {r, moved},
              .how = merge::fold,
              .completes = i == rounds() - 1};
    }

   private:
    RONDO_HD constexpr int skip(int k) const noexcept { return ((n - 1) >> k) + 1; }
  };

  /// reduce_scatter backwards: ceil(log2 n) rounds, (n - 1)/n of the buffer sent by each rank.
  struct all_gather {
    int n;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return n; }
    RONDO_HD constexpr int rounds() const noexcept { return detail::ceil_log2(n); }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      return detail::backwards(reduce_scatter{n}.at(r, rounds() - 1 - i), merge::overwrite);
    }
  };

  /// reduce_scatter, then all_gather: 2 ceil(log2 n) rounds, 2(n - 1)/n of the buffer sent by each rank.
  struct all_reduce {
    int n;

    static constexpr bool keeps_rank_order = false;
    static constexpr bool uniform_tree = false;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return n; }
    RONDO_HD constexpr int rounds() const noexcept { return 2 * detail::ceil_log2(n); }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      int const half = detail::ceil_log2(n);
      return i < half ? reduce_scatter{n}.at(r, i) : all_gather{n}.at(r, i - half);
    }
  };
};

}  // namespace rondo::inline v0
