#include "collective.hpp"
#include "datatype.hpp"
#include "sizes.hpp"
#include "text.hpp"

#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

namespace rondo::bench {
namespace {

using enum collective;

TEST(bench_collective, factors_are_those_of_nccl_tests) {
  EXPECT_DOUBLE_EQ(bus_factor(all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(reduce_scatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(all_gather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(all_to_all, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(broadcast, 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor(reduce, 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor(all_reduce, 1), 0);
}

TEST(bench_collective, every_output_comes_from_somewhere) {
  for (auto const what : all_collectives())
    for (int const p : {1, 2, 3, 5})
      for (rank_t r = 0; r < p; ++r) {
        auto const s = shape_of(what, 100, p, r, p - 1);
        std::size_t covered = 0;
        if (s.out > 0)
          for (auto const& o : origins(what, s, p, r, p - 1)) {
            EXPECT_EQ(o.at, covered) << to_string(what);
            covered += o.count;
          }
        EXPECT_EQ(covered, s.out) << to_string(what) << " " << p << " " << r;
      }
}

TEST(bench_collective, blocks_are_never_empty_unless_the_buffer_is) {
  EXPECT_EQ(shape_of(all_gather, 2, 5, 0, 0).count, 1U);
  EXPECT_EQ(shape_of(all_gather, 0, 5, 0, 0).out, 0U);
  EXPECT_EQ(shape_of(reduce_scatter, 17, 4, 0, 0).in, 16U);
}

TEST(bench_collective, only_the_root_has_the_whole) {
  EXPECT_EQ(shape_of(gather, 12, 3, 1, 0).out, 0U);
  EXPECT_EQ(shape_of(gather, 12, 3, 0, 0).out, 12U);
  EXPECT_EQ(shape_of(scatter, 12, 3, 1, 0).in, 0U);
  EXPECT_EQ(shape_of(reduce, 12, 3, 1, 0).out, 0U);
}

TEST(bench_collective, ring_links_carry_the_least_possible) {
  std::size_t broadcast_links = 0;
  for (rank_t r = 0; r < 4; ++r) {
    EXPECT_EQ(link_bytes(all_reduce, 4000, 4, r, 0), 6000U);
    broadcast_links += link_bytes(broadcast, 1000, 4, r, 2);
  }
  EXPECT_EQ(broadcast_links, 3000U);
}

TEST(bench_names, are_found_and_unknown_ones_refused) {
  EXPECT_EQ(parse_collective("alltoall"), all_to_all);
  EXPECT_EQ(parse_collective("sendrecv"), send_receive);
  EXPECT_EQ(datatype_from("bf16"), datatype::bfloat16);
  EXPECT_EQ(datatype_from("float"), datatype::float32);
  EXPECT_EQ(reduction_from("mulsum"), reduction::mulsum);
  EXPECT_THROW(parse_collective("allreduce2"), usage_error);
  EXPECT_THROW(datatype_from("quad"), usage_error);
  EXPECT_THROW(reduction_from("xor"), usage_error);
  for (auto const type : all_datatypes()) EXPECT_EQ(datatype_from(name_of(type)), type);
}

TEST(bench_text, bytes) {
  EXPECT_EQ(parse_bytes("8"), 8U);
  EXPECT_EQ(parse_bytes("64K"), 65536U);
  EXPECT_EQ(parse_bytes("1.5MiB"), 1572864U);
  EXPECT_EQ(parse_bytes("1g"), std::size_t{1} << 30);
  for (auto const* bad : {"", "-1", "3X", "1Kb2", "MiB", "1e30"}) EXPECT_THROW(parse_bytes(bad), usage_error) << bad;
  EXPECT_EQ(format_bytes(8), "8 B");
  EXPECT_EQ(format_bytes(65536), "64 KiB");
  EXPECT_EQ(format_bytes((25U << 20) + 100000), "25.1 MiB");
}

TEST(bench_text, lists_and_sentences) {
  EXPECT_EQ(split_list(",2,,4"), (std::vector<std::string>{"2", "4"}));
  EXPECT_EQ(join_words({"a", "b", "c"}), "a, b and c");
  EXPECT_EQ(join_words({"a"}), "a");
  EXPECT_EQ(format_us(0.1234), "0.12 us");
  EXPECT_EQ(format_us(45678), "45.7 ms");
}

TEST(bench_sizes, grow_by_a_factor_or_by_a_step) {
  size_range o;
  o.begin = 8;
  o.end = 4096;
  EXPECT_EQ(sizes_in(o), (std::vector<std::size_t>{8, 64, 512, 4096}));
  o.step = 2000;
  EXPECT_EQ(sizes_in(o), (std::vector<std::size_t>{8, 2008, 4008}));
  o.factor = 2;
  EXPECT_THROW(sizes_in(o), usage_error);
  o = {};
  o.begin = 16;
  o.end = 8;
  EXPECT_THROW(sizes_in(o), usage_error);
  o.factor = 1;
  EXPECT_THROW(sizes_in(o), usage_error);
}

}  // namespace
}  // namespace rondo::bench
