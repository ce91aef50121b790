#include "analysis.hpp"
#include "report.hpp"

#include <cmath>
#include <cstddef>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace rondo::bench {
namespace {

row timed(std::string algorithm, std::size_t bytes, double us, int ranks = 2) {
  row r;
  r.transport = "shm";
  r.ranks = ranks;
  r.algorithm = std::move(algorithm);
  r.collective = "all_reduce";
  r.bytes = bytes;
  r.min_us = r.p50_us = r.p99_us = us;
  r.algbw_GBps = r.busbw_GBps = static_cast<double>(bytes) / us / 1e3;
  r.limit_us = us / 4;
  r.checked = true;
  return r;
}

std::vector<row> contest_rows() {
  return {timed("ring", 64, 8),        timed("tree", 64, 4),        timed("automatic", 64, 5),
          timed("ring", 4096, 9),      timed("tree", 4096, 8),      timed("automatic", 4096, 8),
          timed("ring", 1 << 20, 100), timed("tree", 1 << 20, 400), timed("automatic", 1 << 20, 110)};
}

TEST(bench_analysis, the_fastest_wins_and_automatic_does_not_take_part) {
  auto const rows = contest_rows();
  auto const panels = panels_of(rows);
  ASSERT_EQ(panels.size(), 1U);
  ASSERT_EQ(panels[0].contests.size(), 3U);
  auto const& small = panels[0].contests[0];
  EXPECT_EQ(small.best()->algorithm, "tree");
  EXPECT_DOUBLE_EQ(small.lead(), 2);
  EXPECT_DOUBLE_EQ(small.regret(), 1.25);
}

TEST(bench_analysis, crossovers_are_named_by_measured_sizes) {
  auto const rows = contest_rows();
  auto const panels = panels_of(rows);
  EXPECT_EQ(describe(reigns_of(panels[0])), "tree up to 4 KiB, ring from 1 MiB");
}

TEST(bench_analysis, a_lead_within_noise_does_not_change_the_leader) {
  std::vector const rows{timed("ring", 64, 10),  timed("tree", 64, 20),     timed("ring", 512, 10.3),
                         timed("tree", 512, 10), timed("ring", 4096, 10.6), timed("tree", 4096, 10)};
  EXPECT_EQ(describe(reigns_of(panels_of(rows)[0])), "ring up to 512 B, tree from 4 KiB");
}

TEST(bench_analysis, whole_gradients_are_not_sizes) {
  auto rows = contest_rows();
  rows.push_back(timed("ring", 1 << 30, 1));
  rows.back().workload = "gpt2";
  EXPECT_EQ(panels_of(rows)[0].contests.size(), 3U);
}

TEST(bench_analysis, wrong_results_are_counted) {
  auto rows = contest_rows();
  EXPECT_TRUE(judge(rows).good());
  rows[2].wrong = 3;
  rows[3].hashes_equal = false;
  auto const verdict = judge(rows);
  EXPECT_EQ(verdict.wrong, 3U);
  EXPECT_EQ(verdict.unequal, 1U);
  EXPECT_FALSE(verdict.good());
}

TEST(bench_report, is_one_page_that_needs_nothing_else) {
  auto rows = contest_rows();
  for (auto const& r : contest_rows()) rows.push_back(timed(r.algorithm, r.bytes, 3 * r.p50_us, 4));
  report_facts const facts{"a <machine>", "today", "1", "rondo compare", 12, 2, {100, 300}};
  auto const html = report_page(facts, rows);
  EXPECT_NE(html.find("a &lt;machine&gt;"), std::string::npos);
  for (auto const* foreign : {"http://", "https://", "src=", "<script", "@import", "url("})
    EXPECT_EQ(html.find(foreign), std::string::npos) << foreign;
  EXPECT_NE(html.find("tree up to 4 KiB, ring from 1 MiB"), std::string::npos);
  EXPECT_EQ(html.find("nan"), std::string::npos);
}

TEST(bench_report, says_in_red_that_results_are_wrong) {
  auto rows = contest_rows();
  rows[0].wrong = 1;
  EXPECT_NE(report_page({}, rows).find("Do not use"), std::string::npos);
}

TEST(bench_report, a_single_row_and_no_row_are_pages_too) {
  std::vector const one{timed("ring", 8, 1)};
  EXPECT_NE(report_page({}, one).find("ring at every size"), std::string::npos);
  EXPECT_NE(report_page({}, {}).find("</html>"), std::string::npos);
}

}  // namespace
}  // namespace rondo::bench
