#include "small_float_oracle.hpp"
#include <rondo/float16.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <type_traits>

namespace {

using rondo::float16;
using float16_oracle = small_float_oracle<float16, std::uint16_t, 5, 10, true>;

static_assert(sizeof(float16) == 2 && alignof(float16) == 2 && std::is_trivially_copyable_v<float16>);
static_assert(std::is_trivially_default_constructible_v<float16>);
static_assert(std::is_convertible_v<float16, float> && !std::is_convertible_v<float, float16>);
static_assert(float16(1.5F) + 1 == 2.5F && float16(-2.0F) < float16(1.0F) && float16(-0.0F) == float16(0.0F));
static_assert(float16(std::numeric_limits<float>::quiet_NaN()) != float16(1.0F));

TEST(float16, every_pattern_survives_the_way_through_float) {
  float16_oracle::every_pattern_survives_the_way_through_float();
}
TEST(float16, a_sample_of_all_floats_rounds_to_nearest_even) {
  float16_oracle::a_sample_of_all_floats_rounds_to_nearest_even();
}
TEST(float16, every_halfway_case_rounds_to_even) { float16_oracle::every_halfway_case_rounds_to_even(); }
TEST(float16, limits_describe_the_format) { float16_oracle::limits_describe_the_format(); }
TEST(float16, special_values_stay_special) { float16_oracle::special_values_stay_special(); }

TEST(float16, the_largest_value_is_65504_and_half_a_step_more_is_infinity) {
  EXPECT_EQ(std::numeric_limits<float16>::max(), 65504.0F);
  EXPECT_EQ(float16(65519.99F), 65504.0F);
  EXPECT_TRUE(std::isinf(static_cast<float>(float16(65520.0F))));
}

#if defined(__FLT16_MAX__) && !defined(__clang__)
TEST(float16, agrees_with_the_type_of_the_compiler) {
  __extension__ using native = _Float16;
  for (std::uint64_t i = 0; i < 1ULL << 32; i += 421) {
    float const x = std::bit_cast<float>(static_cast<std::uint32_t>(i));
    if (std::isnan(x)) continue;
    ASSERT_EQ(std::bit_cast<std::uint16_t>(float16(x)), std::bit_cast<std::uint16_t>(static_cast<native>(x))) << x;
  }
}
#endif

}  // namespace
