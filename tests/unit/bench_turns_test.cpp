#include "statistics.hpp"
#include "turns.hpp"

#include <cstddef>
#include <gtest/gtest.h>
#include <initializer_list>
#include <vector>

namespace rondo::bench {
namespace {

turns after(int wanted, bool ever_near, std::initializer_list<double> flags_ns) {
  turns taken(wanted, ever_near);
  for (double const ns : flags_ns) taken.add(ns);
  return taken;
}

TEST(bench_turns, with_the_cores_apart_count_only_where_there_are_hardly_others) {
  EXPECT_EQ(after(5, false, {100, 500, 110, 190, 201}).counted(), (std::vector<std::size_t>{0, 2, 3}));
  EXPECT_EQ(after(5, false, {100, 500, 110}).counted(), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(after(5, false, {500, not_measured, 500, 500}).counted(), (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_DOUBLE_EQ(after(5, false, {100, 500, 110, 190, 201}).flag_ns(), 110);
}

TEST(bench_turns, go_on_until_as_many_as_wanted_found_the_cores_near) {
  EXPECT_FALSE(after(3, false, {100, 110}).enough());
  EXPECT_TRUE(after(3, false, {100, 110, 120}).enough());
  EXPECT_FALSE(after(3, false, {100, 500, 110}).enough());
  EXPECT_TRUE(after(3, false, {100, 500, 110, 120}).enough());
  EXPECT_FALSE(after(3, false, {100, 500, 500, 500, 500, 500, 500, 500}).enough());
  EXPECT_TRUE(after(3, false, {100, 500, 500, 500, 500, 500, 500, 500, 500}).enough());
}

TEST(bench_turns, do_not_wait_for_cores_that_are_never_near) {
  EXPECT_TRUE(after(3, false, {500, 510, 520}).enough());
  EXPECT_TRUE(after(3, false, {not_measured, not_measured, not_measured}).enough());
  EXPECT_FALSE(after(3, true, {500, 510, 520}).enough());
  EXPECT_FALSE(after(3, false, {500, 510, 520}).ever_near());
  EXPECT_TRUE(after(3, false, {500, 110, 520}).ever_near());
}

}  // namespace
}  // namespace rondo::bench
