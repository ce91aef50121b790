#pragma once

#include <rondo/schedule.hpp>
#include <rondo/schedule/arithmetic.hpp>

#include <string_view>

namespace rondo::inline v0 {

/// Everybody sends to the right and receives from the left.
///
/// Optimal volume for every n at 2(n - 1) rounds, and never two messages on one link, whatever the network: the choice
/// for large buffers. Patarasuk & Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, JPDC
/// 69(2), 2009. The sum of chunk c starts at rank c + 1 and ends at rank c, so its tree depends on the chunk.
struct ring {
  static constexpr std::string_view name = "ring";

  /// n - 1 rounds, (n - 1)/n of the buffer sent by each rank.
  struct reduce_scatter {
    int n;

    static constexpr bool keeps_rank_order = false;
    static constexpr bool uniform_tree = false;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return n; }
    RONDO_HD constexpr int rounds() const noexcept { return n - 1; }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      bool const last = i == n - 2;
      return {.to = detail::wrap(r + 1, n),
              .out = {detail::wrap(r - 1 - i, n), 1},
              .from = detail::wrap(r - 1, n),
              .in = {detail::wrap(r - 2 - i, n), 1},
              .how = merge::fold,
              .keep = last,
              .completes = last};
    }
  };

  /// n - 1 rounds, (n - 1)/n of the buffer sent by each rank.
  struct all_gather {
    int n;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return n; }
    RONDO_HD constexpr int rounds() const noexcept { return n - 1; }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      return {.to = detail::wrap(r + 1, n),
              .out = {detail::wrap(r - i, n), 1},
              .from = detail::wrap(r - 1, n),
              .in = {detail::wrap(r - 1 - i, n), 1}};
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

  /// A chain from the root to its left neighbour: n - 1 rounds for the first segment, one more for each that follows;
  /// every rank but the last sends the buffer once.
  struct broadcast {
    int n;
    rank_t root = 0;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return 1; }
    RONDO_HD constexpr int rounds() const noexcept { return n - 1; }
    RONDO_HD constexpr int period() const noexcept { return 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      int const place = detail::wrap(r - root, n);
      step s;
      if (i == place) s.to = detail::wrap(r + 1, n), s.out = {0, 1};
      if (i == place - 1) s.from = detail::wrap(r - 1, n), s.in = {0, 1};
      return s;
    }
  };

  /// The chain of broadcast, backwards: the sum is v(root) + (v(root + 1) + (… + v(root - 1))).
  struct reduce {
    int n;
    rank_t root = 0;

    static constexpr bool keeps_rank_order = false;
    static constexpr bool uniform_tree = false;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return 1; }
    RONDO_HD constexpr int rounds() const noexcept { return n - 1; }
    RONDO_HD constexpr int period() const noexcept { return 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      step s = detail::backwards(broadcast{n, root}.at(r, n - 2 - i), merge::overwrite);
      if (s.from != nobody) s.how = merge::fold, s.keep = s.completes = r == root;
      return s;
    }
  };
};

}  // namespace rondo::inline v0
