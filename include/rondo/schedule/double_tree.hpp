#pragma once

#include <rondo/schedule.hpp>
#include <rondo/schedule/in_order_tree.hpp>

#include <algorithm>
#include <string_view>

namespace rondo::inline v0 {

/// Two binary trees, one for each half of the buffer, such that a rank is an inner node of at most one of them.
///
/// Every rank sends and receives at most twice the buffer, as in a ring, in a number of rounds logarithmic in n: about
/// 8 log2 n for the first segment and 4, for both halves together, for each that follows. The order of the operands is
/// kept; the tree depends on the half. Sanders, Speck, Träff, Two-tree algorithms for full bandwidth broadcast,
/// reduction and scan, Parallel Computing 35(12), 2009.
///
/// The first tree is the in-order tree over an even number m of ranks, the second its mirror image; the last rank of an
/// odd number sits above both roots. A two-colouring of the edges in which the two edges to the parents of a rank
/// differ, as do the two to its children, gives each edge its rounds modulo 4: 2 color on the way up, 2 color + 1 on
/// the way down. From an inner node to an inner child the color changes with a left turn if m is a multiple of 4, else
/// with a right turn; a leaf takes the color of its mirror image, which is inner. So one level costs 2 rounds where the
/// color changes and 4 where it does not.
struct double_tree {
  static constexpr std::string_view name = "double_tree";

  struct all_reduce {
    int n;

    static constexpr bool keeps_rank_order = true;
    static constexpr bool uniform_tree = false;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return 2; }
    RONDO_HD constexpr int rounds() const noexcept { return n > 1 ? meet(1) + turn() + longest() + 1 : 0; }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? 4 : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      step s;
      for (int half = 0; half != 2; ++half) {
        int const up = meet(half) - i;             // this far from the root values move up now
        int const down = i - meet(half) - turn();  // and results down
        slice const all{half, 1};
        auto const rank_at = [&](int place) { return half == 0 ? place : places() - 1 - place; };
        auto const serve = [&](rank_t child, int delay, bool last) {
          if (up == delay) {
            s.from = child, s.in = all, s.completes = last;
            s.how = child < r ? merge::fold_front : merge::fold;
          }
          if (down == delay) s.to = child, s.out = all;
        };

        if (r == places()) {
          serve(rank_at(detail::in_order_top(0, places())), 0, true);
          continue;
        }
        auto const node = at_place(rank_at(r));
        int const mine = delay(node, rank_at(r));
        bool const top = node.parent == nobody;
        if (!top || odd()) {
          rank_t const parent = top ? places() : rank_at(node.parent);
          if (up == mine) s.to = parent, s.out = all;
          if (down == mine) s.from = parent, s.in = all;
        }
        if (node.left == nobody) continue;
        int const left = delay_below(mine, rank_at(r), node.left);
        int const right = node.right == nobody ? left + 1 : delay_below(mine, rank_at(r), node.right);
        bool const root = top && !odd();
        serve(rank_at(node.left), left, root && left < right);
        if (node.right != nobody) serve(rank_at(node.right), right, root && right < left);
      }
      return s;
    }

   private:
    RONDO_HD constexpr bool odd() const noexcept { return n % 2 != 0; }
    RONDO_HD constexpr int places() const noexcept { return n - n % 2; }

    /// The round in which the sum of a half leaves its root, and how much later the total comes back there. Without a
    /// rank above it the root need not wait.
    RONDO_HD constexpr int meet(int half) const noexcept { return longest() + 2 * half; }
    RONDO_HD constexpr int turn() const noexcept { return odd() ? 1 : -3; }

    RONDO_HD constexpr detail::tree_node at_place(int place) const noexcept {
      return detail::in_order_node(places(), detail::in_order_top(0, places()), place);
    }

    /// Rounds that a left and a right turn to an inner node cost.
    RONDO_HD constexpr int left_turn() const noexcept { return places() % 4 == 0 ? 2 : 4; }
    RONDO_HD constexpr int right_turn() const noexcept { return 6 - left_turn(); }
    RONDO_HD constexpr int longest() const noexcept {
      return detail::in_order_extent(places() / 2, left_turn(), right_turn()) + 4;
    }

    RONDO_HD constexpr int turns(detail::tree_node const& node) const noexcept {
      return left_turn() * node.lefts + right_turn() * node.rights;
    }

    /// Rounds from a place to the root; half of it is the color of its edge, up to the color of the root.
    RONDO_HD constexpr int delay(detail::tree_node const& node, int place) const noexcept {
      if (place % 2 != 0) return turns(node);
      int const last_turn = place < node.parent ? left_turn() : right_turn();
      return delay_below(turns(node) - last_turn, node.parent, place);
    }

    /// The same for a child, from that of its parent.
    RONDO_HD constexpr int delay_below(int delay, int parent, int child) const noexcept {
      if (child % 2 != 0) return delay + (child < parent ? left_turn() : right_turn());
      int const mirrored = turns(at_place(places() - 1 - child));
      return delay + ((delay ^ mirrored) % 4 != 0 ? 2 : 4);
    }
  };
};

}  // namespace rondo::inline v0
