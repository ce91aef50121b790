#include "statistics.hpp"

#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace rondo::bench {
namespace {

TEST(bench_statistics, quantiles_interpolate_between_neighbours) {
  std::array const sorted{1.0, 2.0, 4.0, 8.0};
  EXPECT_EQ(quantile(sorted, 0), 1);
  EXPECT_EQ(quantile(sorted, 1), 8);
  EXPECT_DOUBLE_EQ(quantile(sorted, 0.5), 3);
  EXPECT_DOUBLE_EQ(quantile(sorted, 1.0 / 3), 2);
}

TEST(bench_statistics, one_sample_is_every_quantile) {
  std::array const one{5.0};
  for (double const q : {0.0, 0.5, 0.99, 1.0}) EXPECT_EQ(quantile(one, q), 5);
}

TEST(bench_statistics, no_samples_give_no_number) {
  EXPECT_TRUE(std::isnan(quantile({}, 0.5)));
  EXPECT_TRUE(std::isnan(summarise({}).p50));
  EXPECT_TRUE(std::isnan(geometric_mean({})));
}

TEST(bench_statistics, summary_sorts) {
  auto const s = summarise({9, 1, 5});
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.p50, 5);
  EXPECT_DOUBLE_EQ(s.p99, 8.92);
}

TEST(bench_statistics, an_iteration_is_as_slow_as_its_slowest_rank) {
  std::array const by_rank{1.0, 9.0, 3.0,   // rank 0
                           4.0, 2.0, 3.0};  // rank 1
  EXPECT_EQ(slowest(by_rank, 3), (std::vector{4.0, 9.0, 3.0}));
}

TEST(bench_statistics, iterations_fill_the_budget_within_limits) {
  EXPECT_EQ(iterations_for(1, 0.01, 3, 2000), 100);
  EXPECT_EQ(iterations_for(1, 10, 3, 2000), 3);
  EXPECT_EQ(iterations_for(1, 1e-9, 3, 2000), 2000);
  EXPECT_EQ(iterations_for(1, 0, 3, 2000), 2000);
}

TEST(bench_statistics, geometric_mean_of_ratios) {
  std::array const ratios{1.0, 4.0};
  EXPECT_DOUBLE_EQ(geometric_mean(ratios), 2);
}

}  // namespace
}  // namespace rondo::bench
