#pragma once

#include <rondo/schedule.hpp>
#include <rondo/schedule/arithmetic.hpp>

#include <string_view>

namespace rondo::inline v0 {

/// Everybody talks to everybody, in n - 1 rounds of pairs: nothing is forwarded, the volume is optimal, and no message
/// depends on another one. In round i a rank sends to the one i + 1 places to its right: the classic linear exchange.
struct direct {
  static constexpr std::string_view name = "direct";

  /// chunks() == 2n: blocks 0 … n - 1 are sent, block q to rank q; blocks n … 2n - 1 are received, block n + q from
  /// rank q. The block for the rank itself stays with the caller. n - 1 rounds.
  struct all_to_all {
    int n;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return 2 * n; }
    RONDO_HD constexpr int rounds() const noexcept { return n - 1; }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      rank_t const to = detail::wrap(r + i + 1, n);
      rank_t const from = detail::wrap(r - i - 1, n);
      return {.to = to, .out = {to, 1}, .from = from, .in = {n + from, 1}};
    }
  };

  /// The owner folds what arrives, its own operand first; the tree depends on the chunk. n - 1 rounds, (n - 1)/n of the
  /// buffer sent by each rank.
  struct reduce_scatter {
    int n;

    static constexpr bool keeps_rank_order = false;
    static constexpr bool uniform_tree = false;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return n; }
    RONDO_HD constexpr int rounds() const noexcept { return n - 1; }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      rank_t const to = detail::wrap(r + i + 1, n);
      return {.to = to,
              .out = {to, 1},
              .from = detail::wrap(r - i - 1, n),
              .in = {r, 1},
              .how = merge::fold,
              .completes = i == n - 2};
    }
  };

  /// Everybody hands its chunk to everybody. n - 1 rounds, (n - 1)/n of the buffer sent by each rank.
  struct all_gather {
    int n;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return n; }
    RONDO_HD constexpr int rounds() const noexcept { return n - 1; }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      rank_t const from = detail::wrap(r - i - 1, n);
      return {.to = detail::wrap(r + i + 1, n), .out = {r, 1}, .from = from, .in = {from, 1}};
    }
  };

  /// The root hears from one rank a round: nobody else needs memory for blocks that are not its own. n - 1 rounds.
  struct gather {
    int n;
    rank_t root = 0;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return n; }
    RONDO_HD constexpr int rounds() const noexcept { return n - 1; }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      rank_t const turn = detail::wrap(root + i + 1, n);
      if (r == root) return {.from = turn, .in = {turn, 1}};
      if (r == turn) return {.to = root, .out = {r, 1}};
      return {};
    }
  };

  /// gather with the arrows turned round.
  struct scatter {
    int n;
    rank_t root = 0;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return n; }
    RONDO_HD constexpr int rounds() const noexcept { return n - 1; }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      return detail::backwards(gather{n, root}.at(r, i), merge::overwrite);
    }
  };
};

}  // namespace rondo::inline v0
