#include "row.hpp"
#include "text.hpp"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rondo::bench {
namespace {

row sample() {
  row r;
  r.transport = "shm";
  r.ranks = 3;
  r.algorithm = "ring";
  r.collective = "all_reduce";
  r.type = "float";
  r.op = "sum";
  r.bytes = std::size_t{5} << 30;
  r.count = r.bytes / 4;
  r.in_place = true;
  r.buffers = 2;
  r.iterations = 7;
  r.min_us = 1.5;
  r.p50_us = 2.25;
  r.p99_us = 1e9;
  r.algbw_GBps = 3;
  r.busbw_GBps = 4;
  r.wrong = 1;
  r.hashes_equal = false;
  r.flag_round_trip_ns = 101;
  return r;
}

std::string content_of(std::string const& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct scratch_file {
  std::string path = testing::TempDir() + "bench_row_test." + std::to_string(::getpid());
  ~scratch_file() { std::remove(path.c_str()); }
};

TEST(bench_row, survives_the_pipe) {
  std::vector const rows{sample(), row{}};
  auto const back = from_line(to_line(rows));
  ASSERT_EQ(back.size(), 2U);
  EXPECT_EQ(back[0].transport, "shm");
  EXPECT_EQ(back[0].bytes, std::size_t{5} << 30);
  EXPECT_TRUE(back[0].in_place);
  EXPECT_FALSE(back[0].hashes_equal);
  EXPECT_EQ(back[0].p50_us, 2.25);
  EXPECT_TRUE(std::isnan(back[0].limit_us));
  EXPECT_TRUE(std::isnan(back[1].min_us));
  EXPECT_EQ(to_line(rows).find('\n'), std::string::npos);
}

TEST(bench_row, json_is_an_array_of_objects_with_the_promised_names) {
  scratch_file const file;
  std::vector const rows{sample(), sample()};
  write_json(file.path, rows);
  auto const json = nlohmann::json::parse(content_of(file.path));
  ASSERT_EQ(json.size(), 2U);
  for (auto const* name :
       {"transport", "ranks", "algorithm", "collective", "type", "op", "bytes", "in_place", "buffers", "iterations",
        "min_us", "p50_us", "p99_us", "algbw_GBps", "busbw_GBps", "wrong", "hashes_equal", "flag_round_trip_ns"})
    EXPECT_TRUE(json[0].contains(name)) << name;
  EXPECT_TRUE(json[0]["limit_us"].is_null());
}

TEST(bench_row, no_rows_are_valid_json_too) {
  scratch_file const file;
  write_json(file.path, {});
  EXPECT_TRUE(nlohmann::json::parse(content_of(file.path)).empty());
}

TEST(bench_row, csv_has_as_many_fields_as_names) {
  scratch_file const file;
  std::vector const rows{sample()};
  write_csv(file.path, rows);
  auto const text = content_of(file.path);
  auto const first = text.substr(0, text.find('\n')), second = text.substr(text.find('\n') + 1);
  EXPECT_EQ(std::count(first.begin(), first.end(), ','), std::count(second.begin(), second.end(), ','));
  EXPECT_EQ(first.substr(0, 15), "transport,ranks");
}

TEST(bench_row, a_file_that_cannot_be_written_is_an_error) {
  EXPECT_THROW(write_json("/proc/nowhere/rows.json", {}), usage_error);
}

TEST(bench_row, wrong_elements_or_unequal_hashes_are_not_good) {
  EXPECT_TRUE(row{}.good());
  EXPECT_FALSE(sample().good());
  row unequal;
  unequal.hashes_equal = false;
  EXPECT_FALSE(unequal.good());
}

}  // namespace
}  // namespace rondo::bench
