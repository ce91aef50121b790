#include "small_float_oracle.hpp"
#include <rondo/bfloat16.hpp>

#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <type_traits>

namespace {

using rondo::bfloat16;
using bfloat16_oracle = small_float_oracle<bfloat16, std::uint16_t, 8, 7, true>;

static_assert(sizeof(bfloat16) == 2 && alignof(bfloat16) == 2 && std::is_trivially_copyable_v<bfloat16>);
static_assert(std::is_trivially_default_constructible_v<bfloat16>);
static_assert(std::is_convertible_v<bfloat16, float> && !std::is_convertible_v<float, bfloat16>);
static_assert(bfloat16(1.5F) + 1 == 2.5F && bfloat16(-2.0F) < bfloat16(1.0F) && bfloat16(-0.0F) == bfloat16(0.0F));
static_assert(bfloat16(std::numeric_limits<float>::quiet_NaN()) != bfloat16(1.0F));

TEST(bfloat16, every_pattern_survives_the_way_through_float) {
  bfloat16_oracle::every_pattern_survives_the_way_through_float();
}
TEST(bfloat16, a_sample_of_all_floats_rounds_to_nearest_even) {
  bfloat16_oracle::a_sample_of_all_floats_rounds_to_nearest_even();
}
TEST(bfloat16, every_halfway_case_rounds_to_even) { bfloat16_oracle::every_halfway_case_rounds_to_even(); }
TEST(bfloat16, limits_describe_the_format) { bfloat16_oracle::limits_describe_the_format(); }
TEST(bfloat16, special_values_stay_special) { bfloat16_oracle::special_values_stay_special(); }

TEST(bfloat16, keeps_the_range_of_float) {
  EXPECT_EQ(bfloat16(0x1p127F), 0x1p127F);
  EXPECT_EQ(bfloat16(0x1p-133F), 0x1p-133F);
  EXPECT_EQ(bfloat16(0x1p-134F), 0.0F);
  EXPECT_TRUE(std::isinf(static_cast<float>(bfloat16(std::numeric_limits<float>::max()))));
}

}  // namespace
