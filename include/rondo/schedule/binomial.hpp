#pragma once

#include <rondo/schedule.hpp>
#include <rondo/schedule/arithmetic.hpp>

#include <string_view>

namespace rondo::inline v0 {

/// Binomial trees: ceil(log2 n) rounds from the root or to it, whole buffers, for small messages and any n and root.
///
/// The sum has the canonical tree, whatever the root. The root takes part in every round, so that segments can follow
/// each other only every ceil(log2 n) rounds; in an all-reduce its two halves overlap. The classic trees of MPI.
struct binomial {
  static constexpr std::string_view name = "binomial";

  /// Those who have the buffer double every round; the root sends it ceil(log2 n) times.
  struct broadcast {
    int n;
    rank_t root = 0;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return 1; }
    RONDO_HD constexpr int rounds() const noexcept { return detail::ceil_log2(n); }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      int const place = detail::wrap(r - root, n);
      int const have = 1 << i;
      step s;
      if (place < have && place + have < n) s.to = detail::wrap(r + have, n), s.out = {0, 1};
      if (place >= have && place < 2 * have) s.from = detail::wrap(r - have, n), s.in = {0, 1};
      return s;
    }
  };

  /// In round k blocks of 2^k neighbours are joined in pairs. The sum of a block is held by its first rank, or by the
  /// root if that is inside. Every rank but the root sends the buffer once.
  struct reduce {
    int n;
    rank_t root = 0;

    static constexpr bool keeps_rank_order = true;
    static constexpr bool uniform_tree = true;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return 1; }
    RONDO_HD constexpr int rounds() const noexcept { return detail::ceil_log2(n); }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      if (holder(r, i) != r) return {};
      rank_t const neighbour = r ^ (1 << i);
      if ((neighbour >> i << i) >= n) return {};
      rank_t const peer = holder(neighbour, i);
      if (holder(r, i + 1) != r) return {.to = peer, .out = {0, 1}};
      return {.from = peer,
              .in = {0, 1},
              .how = peer < r ? merge::fold_front : merge::fold,
              .keep = holder(r, i + 2) == r,
              .completes = i == rounds() - 1};
    }

   private:
    /// Who holds the sum of the block of 2^level neighbours around r.
    RONDO_HD constexpr rank_t holder(rank_t r, int level) const noexcept {
      return r >> level == root >> level ? root : r >> level << level;
    }
  };

  /// reduce to rank 0, then broadcast from there: 2 ceil(log2 n) rounds.
  struct all_reduce {
    int n;

    static constexpr bool keeps_rank_order = true;
    static constexpr bool uniform_tree = true;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return 1; }
    RONDO_HD constexpr int rounds() const noexcept { return 2 * detail::ceil_log2(n); }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? detail::ceil_log2(n) : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      int const half = detail::ceil_log2(n);
      return i < half ? reduce{n}.at(r, i) : broadcast{n}.at(r, i - half);
    }
  };
};

}  // namespace rondo::inline v0
