#include "analysis.hpp"
#include "choices.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace rondo::bench {
namespace {

row measured(std::string algorithm, std::size_t bytes, double us, std::string collective = "all_reduce",
             int ranks = 4) {
  row r;
  r.transport = "tcp";
  r.ranks = ranks;
  r.algorithm = std::move(algorithm);
  r.collective = std::move(collective);
  r.bytes = bytes;
  r.min_us = r.p50_us = us;
  return r;
}

TEST(choices, the_fastest_gets_the_line_and_the_next_is_named) {
  auto const lines =
      lines_of(std::vector{measured("ring", 64, 30), measured("tree", 64, 10), measured("binomial", 64, 20)}, 8);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(to_string(lines[0]), "all_reduce tcp 4 64 * tree 10.0 binomial 20.0");
}

TEST(choices, a_line_ends_halfway_to_the_next_size) {
  auto const lines =
      lines_of(std::vector{measured("ring", 64, 1), measured("ring", 1024, 1), measured("ring", 4096, 1)}, 8);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].up_to, 256U);
  EXPECT_EQ(lines[1].up_to, 2048U);
  EXPECT_EQ(lines[2].up_to, policy::any_size);
}

TEST(choices, what_is_level_goes_to_the_built_in_choice_and_then_to_the_smaller_size) {
  policy::line small;
  small.collective = collective::all_reduce;
  small.transport = "tcp";
  small.ranks = 4;
  small.bytes = 64;
  ASSERT_EQ(built_in_choice(small, 8), algorithm::recursive_doubling);
  auto const lines =
      lines_of(std::vector{measured("recursive_doubling", 64, 10.4), measured("tree", 64, 10),      // level
                           measured("recursive_doubling", 512, 12), measured("tree", 512, 10),      // not level
                           measured("recursive_doubling", 1024, 12), measured("tree", 1024, 10.4),  // the neighbour's
                           measured("binomial", 1024, 10), measured("tree", 4096, 13),              // another wins
                           measured("binomial", 4096, 10), measured("recursive_doubling", 4096, 14)},
               8);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0].algorithm, algorithm::recursive_doubling);
  EXPECT_EQ(lines[0].runner_up, algorithm::tree);
  EXPECT_EQ(lines[1].algorithm, algorithm::tree);
  EXPECT_EQ(lines[2].algorithm, algorithm::tree);
  EXPECT_EQ(lines[3].algorithm, algorithm::binomial);
}

TEST(choices, a_median_that_is_better_by_luck_changes_nothing) {
  std::vector rows{measured("recursive_doubling", 64, 20), measured("tree", 64, 10), measured("binomial", 64, 12)};
  rows[0].min_us = 9.5;
  EXPECT_EQ(lines_of(rows, 8)[0].algorithm, algorithm::recursive_doubling);
  rows[2].min_us = 9;
  EXPECT_EQ(lines_of(rows, 8)[0].algorithm, algorithm::binomial);
}

TEST(choices, of_several_passes_the_least_disturbed_counts) {
  std::vector rows{measured("ring", 64, 30), measured("tree", 64, 20), measured("ring", 64, 10),
                   measured("tree", 64, 50), measured("ring", 64, 40, "reduce")};
  auto const least = least_disturbed(rows);
  ASSERT_EQ(least.size(), 3U);
  EXPECT_DOUBLE_EQ(least[0].p50_us, 10);
  EXPECT_DOUBLE_EQ(least[1].p50_us, 20);
  EXPECT_DOUBLE_EQ(least[2].p50_us, 40);
}

TEST(choices, collectives_and_ranks_have_lines_of_their_own_and_automatic_none) {
  std::vector const rows{measured("ring", 64, 1), measured("ring", 64, 1, "reduce"), measured("automatic", 64, 0.5),
                         measured("ring", 64, 1, "reduce", 2)};
  auto const lines = lines_of(rows, 8);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[1].collective, collective::reduce);
  EXPECT_EQ(lines[2].ranks, 2);
}

TEST(choices, changes_name_what_the_model_would_have_taken) {
  std::vector const rows{measured("recursive_doubling", 64, 20), measured("tree", 64, 10),
                         measured("ring", 64 << 20, 1)};
  auto const changes = changes_in(lines_of(rows, 8), rows, 8);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0], "all_reduce over tcp, 4 ranks: 64 B tree instead of recursive_doubling (2.00x)");
}

TEST(regret, counts_the_row_of_the_chosen_algorithm) {
  std::vector rows{measured("ring", 64, 10), measured("tree", 64, 12), measured("automatic", 64, 50)};
  rows[2].chosen = "tree";
  rows.push_back(measured("ring", 512, 10));
  rows.push_back(measured("automatic", 512, 15));
  auto const panels = panels_of(rows);
  EXPECT_DOUBLE_EQ(panels[0].contests[0].regret(), 1.2);
  auto const all = regrets_of(panels);
  EXPECT_EQ(all.count, 2U);
  EXPECT_NEAR(all.mean, 1.3416, 1e-3);
  EXPECT_DOUBLE_EQ(all.worst, 1.5);
  EXPECT_EQ(all.worst_contest->bytes, 512U);
  EXPECT_EQ(regrets_of({}).count, 0U);
}

}  // namespace
}  // namespace rondo::bench
