#pragma once

#include <rondo/schedule.hpp>
#include <rondo/schedule/in_order_tree.hpp>

#include <algorithm>
#include <string_view>

namespace rondo::inline v0 {

/// One binary tree over the ranks in order: everything left of a rank comes before it, everything right of it after it.
///
/// About 2 log2 n rounds each way for the first segment and period() more for each that follows: latency of a tree at a
/// bandwidth that does not depend on n. The order of the operands is kept; the tree is the same for every element, but
/// it is not the canonical one. Period 3 (2) is the least possible: an inner rank sends three (two) times per segment.
///
/// Time in an all-reduce: call the turns from the root down to a rank `lefts` and `rights`. Its sum goes up
/// lefts + 2 rights rounds before the turning point and the total comes down 2 lefts + rights rounds after it, so that
/// at every rank the three sends, and the three receives, fall on different rounds modulo 3.
struct tree {
  static constexpr std::string_view name = "tree";

  /// From the root down; every inner rank sends the buffer at most twice.
  struct broadcast {
    int n;
    rank_t root = 0;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return 1; }
    RONDO_HD constexpr int rounds() const noexcept { return detail::in_order_extent(n, root, 2, 1); }
    RONDO_HD constexpr int period() const noexcept { return n > 2 ? 2 : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept { return down(detail::in_order_node(n, root, r), i); }
  };

  /// From the leaves up to the root; every rank but the root sends the buffer once.
  struct reduce {
    int n;
    rank_t root = 0;

    static constexpr bool keeps_rank_order = true;
    static constexpr bool uniform_tree = false;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return 1; }
    RONDO_HD constexpr int rounds() const noexcept { return detail::in_order_extent(n, root, 1, 2); }
    RONDO_HD constexpr int period() const noexcept { return n > 2 ? 2 : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      return up(detail::in_order_node(n, root, r), rounds() - i);
    }
  };

  /// Up to the middle and down again; every inner rank sends the buffer at most three times.
  struct all_reduce {
    int n;

    static constexpr bool keeps_rank_order = true;
    static constexpr bool uniform_tree = false;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return 1; }
    RONDO_HD constexpr int rounds() const noexcept { return n > 1 ? turn() + 1 + detail::in_order_extent(n, 2, 1) : 0; }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? 3 : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      int const middle = turn();
      auto const node = detail::in_order_node(n, detail::in_order_top(0, n), r);
      return i < middle ? up(node, middle - i) : down(node, i - middle - 1);
    }

   private:
    RONDO_HD constexpr int turn() const noexcept { return detail::in_order_extent(n, 1, 2); }
  };

 private:
  /// What a rank does `left` rounds before the last value has arrived at the root. The right child comes first, then
  /// the left one, which every inner rank has, then the sum leaves.
  RONDO_HD static constexpr step up(detail::tree_node const& node, int left) noexcept {
    int const mine = node.lefts + 2 * node.rights;
    bool const top = node.parent == nobody;
    step s;
    if (left == mine && !top) s.to = node.parent, s.out = {0, 1};
    if (left == mine + 1 && node.left != nobody) {
      s.from = node.left, s.in = {0, 1}, s.how = merge::fold_front;
      s.keep = top, s.completes = top;
    }
    if (left == mine + 2 && node.right != nobody) {
      s.from = node.right, s.in = {0, 1}, s.how = merge::fold;
      s.completes = top && node.left == nobody;
    }
    return s;
  }

  /// What a rank does i rounds after the root could send first, which sends to the right child, then to the left one.
  RONDO_HD static constexpr step down(detail::tree_node const& node, int i) noexcept {
    int const mine = 2 * node.lefts + node.rights;
    step s;
    if (i == mine - 1 && node.parent != nobody) s.from = node.parent, s.in = {0, 1};
    if (i == mine && node.right != nobody) s.to = node.right, s.out = {0, 1};
    if (i == mine + 1 && node.left != nobody) s.to = node.left, s.out = {0, 1};
    return s;
  }
};

}  // namespace rondo::inline v0
