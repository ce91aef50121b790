#include <rondo/schedule/double_tree.hpp>
#include <rondo/schedule/hierarchical.hpp>
#include <rondo/schedule/mixed_radix.hpp>
#include <rondo/schedule/ordered_halving.hpp>
#include <rondo/schedule/recursive_doubling.hpp>
#include <rondo/schedule/recursive_halving.hpp>
#include <rondo/schedule/tree.hpp>

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <utility>
#include <vector>

using namespace rondo;

namespace {

std::vector<int> digits_of(mixed_radix::radices const& r) { return {r.digit, r.digit + r.count}; }

template <schedule S>
int busiest(S const& s) {
  int most = 0;
  for (rank_t r = 0; r < s.ranks(); ++r) {
    int sends = 0;
    for (int i = 0; i < s.rounds(); ++i) sends += s.at(r, i).to != nobody;
    most = std::max(most, sends);
  }
  return most;
}

}  // namespace

TEST(mixed_radix, factors_into_the_largest_digits_up_to_the_limit) {
  EXPECT_EQ(digits_of(64), (std::vector{8, 8}));
  EXPECT_EQ(digits_of(12), (std::vector{6, 2}));
  EXPECT_EQ(digits_of({12, 3}), (std::vector{3, 2, 2}));
  EXPECT_EQ(digits_of({12, 12}), (std::vector{12}));
  EXPECT_EQ(digits_of(22), (std::vector{2, 11}));
  EXPECT_EQ(digits_of(13), (std::vector{13}));
  EXPECT_EQ(digits_of(1), (std::vector<int>{}));
}

TEST(mixed_radix, digits_multiply_to_the_number_of_ranks_and_never_run_out) {
  for (int n = 1; n <= 5000; ++n)
    for (int const limit : {1, 2, 7, 16}) ASSERT_EQ(mixed_radix::radices(n, limit).product(), n) << "limit " << limit;
  mixed_radix::radices const many(1 << 20, 2);
  EXPECT_EQ(many.count, mixed_radix::radices::max_digits);
  EXPECT_EQ(many.product(), 1 << 20);
}

TEST(mixed_radix, refuses_digits_that_are_none) {
  EXPECT_EQ(mixed_radix::all_reduce{mixed_radix::radices::of({3, 4})}.ranks(), 12);
  EXPECT_THROW(mixed_radix::radices::of({4, 1}), invalid_argument);
  EXPECT_THROW(mixed_radix::radices::of({2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}), invalid_argument);
}

TEST(hierarchical, finds_the_group_of_every_rank) {
  std::vector<int> const sizes{3, 1, 5, 2};
  hierarchical::groups const g(sizes);
  std::vector<int> found;
  for (rank_t r = 0; r < g.ranks(); ++r) found.push_back(g.of(r));
  EXPECT_EQ(found, (std::vector{0, 0, 0, 1, 2, 2, 2, 2, 2, 3, 3}));
  EXPECT_EQ(g.largest(), 5);
  EXPECT_EQ(g.smallest(), 1);
}

TEST(hierarchical, refuses_groups_that_it_cannot_hold) {
  using groups = hierarchical::groups;
  EXPECT_THROW(groups(std::vector<int>{}), invalid_argument);
  EXPECT_THROW(groups(std::vector{4, 0}), invalid_argument);
  EXPECT_THROW(groups(std::vector<int>(groups::max_count + 1, 1)), invalid_argument);
  EXPECT_EQ(groups(std::vector<int>(groups::max_count, 1)).ranks(), groups::max_count);
}

TEST(double_tree, no_rank_is_an_inner_node_of_both_trees) {
  for (int n = 2; n <= 130; ++n) {
    double_tree::all_reduce const s{n};
    for (rank_t r = 0; r < n; ++r) {
      std::set<std::pair<int, rank_t>> children;  // (tree, rank)
      for (int i = 0; i < s.rounds(); ++i)
        if (step const t = s.at(r, i); t.how != merge::overwrite) children.emplace(t.in.first, t.from);
      std::set<int> trees;
      for (auto const& [tree, child] : children) trees.insert(tree);
      bool const above_both = n % 2 != 0 && r == n - 1;
      ASSERT_LE(trees.size(), above_both ? 2u : 1u) << n << " ranks, rank " << r;
      ASSERT_LE(children.size(), 2u) << n << " ranks, rank " << r;
    }
  }
}

TEST(trees, no_period_below_the_sends_of_the_busiest_rank) {
  EXPECT_EQ(busiest(tree::all_reduce{64}), tree::all_reduce{64}.period());
  EXPECT_EQ(busiest(tree::broadcast{64}), tree::broadcast{64}.period());
  EXPECT_EQ(busiest(double_tree::all_reduce{64}), double_tree::all_reduce{64}.period());
}

TEST(recursive_halving, rounds_are_logarithmic_for_every_number_of_ranks) {
  EXPECT_EQ(recursive_halving::all_reduce{7}.rounds(), 6);
  EXPECT_EQ(recursive_halving::all_reduce{8}.rounds(), 6);
  EXPECT_EQ(recursive_halving::all_reduce{1000}.rounds(), 20);
}

TEST(recursive_doubling, one_round_more_for_each_zero_bit) {
  EXPECT_EQ(recursive_doubling::all_reduce{8}.rounds(), 3);
  EXPECT_EQ(recursive_doubling::all_reduce{7}.rounds(), 4);
  EXPECT_EQ(recursive_doubling::all_reduce{9}.rounds(), 7);
}

TEST(ordered_halving, is_for_powers_of_two) {
  for (int const n : {1, 2, 4, 64}) EXPECT_TRUE(ordered_halving::valid(n)) << n;
  for (int const n : {-2, 0, 3, 12, 63}) EXPECT_FALSE(ordered_halving::valid(n)) << n;
}
