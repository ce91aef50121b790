#include "peers/table.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace rondo::bench::peers {
namespace {

entry timed(std::string name, role what, std::vector<double> us) {
  entry e{std::move(name), what, {}};
  for (double const t : us) e.cells.push_back({{t, t, t}, std::isfinite(t) ? 10 : 0, false});
  return e;
}

std::vector<entry> two_sizes() {
  return {timed("limit", role::limit, {0.2, 100}),
          timed("limit in place", role::limit_in_place, {0.2, 55}),
          timed("rondo, registered", role::registered, {0.25, 110}),
          timed("rondo", role::plain, {0.3, 150}),
          timed("rondo over TCP", role::stream, {9, 900}),
          timed("Fast 1.0", role::peer, {0.6, 2000}),
          timed("Other over TCP", role::peer_stream, {18, 600})};
}

TEST(bench_peers, rondo_is_judged_by_the_limit_and_by_the_best_peer_at_each_size) {
  auto const ratios = ratios_of(two_sizes());
  ASSERT_EQ(ratios.size(), 4U);
  EXPECT_EQ(ratios[0].name, "rondo, registered / limit");
  EXPECT_DOUBLE_EQ(ratios[0].values[0], 0.25 / 0.2);
  EXPECT_DOUBLE_EQ(ratios[0].values[1], 1.1);
  EXPECT_EQ(ratios[1].name, "rondo, registered / limit in place");
  EXPECT_DOUBLE_EQ(ratios[1].values[1], 2);
  EXPECT_EQ(ratios[2].name, "rondo / best peer");
  EXPECT_DOUBLE_EQ(ratios[2].values[0], 0.5);
  EXPECT_DOUBLE_EQ(ratios[2].values[1], 0.25);
  EXPECT_EQ(ratios[3].name, "rondo over TCP / Other");
  EXPECT_DOUBLE_EQ(ratios[3].values[0], 0.5);
  EXPECT_DOUBLE_EQ(ratios[3].values[1], 1.5);
}

TEST(bench_peers, who_is_missing_is_not_compared) {
  auto entries = two_sizes();
  std::erase_if(entries, [](entry const& e) { return e.what == role::registered || e.what == role::stream; });
  auto const ratios = ratios_of(entries);
  ASSERT_EQ(ratios.size(), 1U);
  EXPECT_EQ(ratios[0].name, "rondo / best peer");
  EXPECT_TRUE(ratios_of({}).empty());
}

TEST(bench_peers, a_peer_that_was_given_up_counts_where_it_was_measured) {
  auto entries = two_sizes();
  entries.push_back(timed("Gone 2.0", role::peer, {0.1, not_measured}));
  auto const best = best_of(entries, [](role r) { return r == role::peer; });
  EXPECT_DOUBLE_EQ(best[0], 0.1);
  EXPECT_DOUBLE_EQ(best[1], 2000);
}

TEST(bench_peers, wrong_results_are_shown_and_never_the_best) {
  auto entries = two_sizes();
  entries[5].cells[0].wrong = true;
  EXPECT_DOUBLE_EQ(ratios_of(entries)[2].values[0], 0.3 / 18);
  EXPECT_NE(table_of({8, 1 << 20}, {100, 110}, entries).find("WRONG"), std::string::npos);
}

TEST(bench_peers, the_table_has_a_line_for_each_system_and_ratio) {
  EXPECT_EQ(table_of({8, 1 << 20}, {101.6, not_measured}, two_sizes()),
            "                                        8 B    1 MiB\n"
            "round trip of a flag, ns                102        -\n"
            "limit                                  0.20      100\n"
            "limit in place                         0.20     55.0\n"
            "rondo, registered                      0.25      110\n"
            "rondo                                  0.30      150\n"
            "rondo over TCP                         9.00      900\n"
            "Fast 1.0                               0.60     2000\n"
            "Other over TCP                         18.0      600\n"
            "rondo, registered / limit              1.25     1.10\n"
            "rondo, registered / limit in place     1.25     2.00\n"
            "rondo / best peer                      0.50     0.25\n"
            "rondo over TCP / Other                 0.50     1.50\n");
}

}  // namespace
}  // namespace rondo::bench::peers
