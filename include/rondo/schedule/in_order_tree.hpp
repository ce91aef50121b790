#pragma once

#include <rondo/schedule/arithmetic.hpp>

#include <algorithm>
#include <bit>

namespace rondo::inline v0::detail {

/// What one place of an in-order binary tree knows.
struct tree_node {
  rank_t parent = nobody;
  rank_t left = nobody;   ///< everything in the left subtree comes before this place
  rank_t right = nobody;  ///< everything in the right subtree comes after it
  int lefts = 0;          ///< left turns on the way from the root
  int rights = 0;         ///< right turns
};

/// The top of the in-order tree over the places lo … hi - 1; nobody if there are none. All left subtrees are perfect;
/// so counted from lo the even places are leaves, the odd ones are not, and these form the tree of half the size.
RONDO_HD constexpr rank_t in_order_top(int lo, int hi) noexcept {
  return lo < hi ? lo + static_cast<int>(std::bit_floor(static_cast<unsigned>(hi - lo))) - 1 : nobody;
}

/// Place r of the tree over 0 … n - 1 whose root is `root`, with in-order trees on both sides of it. O(log n).
RONDO_HD constexpr tree_node in_order_node(int n, rank_t root, rank_t r) noexcept {
  tree_node node;
  int lo = 0, hi = n;
  rank_t top = root;
  while (top != r) {
    node.parent = top;
    r < top ? (hi = top, ++node.lefts) : (lo = top + 1, ++node.rights);
    top = in_order_top(lo, hi);
  }
  node.left = in_order_top(lo, r);
  node.right = in_order_top(r + 1, hi);
  return node;
}

/// The largest left * lefts + right * rights in the in-order tree of n places; 0 if it has one or none. O(log n).
RONDO_HD constexpr int in_order_extent(int n, int left, int right) noexcept {
  int extent = 0, reached = 0;
  for (; n > 0; reached += right) {
    int const levels = ceil_log2(n + 1) - 1;  // of the perfect left subtree
    extent = std::max(extent, levels > 0 ? reached + left + (levels - 1) * std::max(left, right) : reached);
    n -= 1 << levels;
  }
  return extent;
}

/// The same in the tree over n places whose root is `root`.
RONDO_HD constexpr int in_order_extent(int n, rank_t root, int left, int right) noexcept {
  int const before = root > 0 ? left + in_order_extent(root, left, right) : 0;
  int const after = root < n - 1 ? right + in_order_extent(n - 1 - root, left, right) : 0;
  return std::max(before, after);
}

}  // namespace rondo::inline v0::detail
