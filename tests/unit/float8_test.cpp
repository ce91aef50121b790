#include "small_float_oracle.hpp"
#include <rondo/float8.hpp>

#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <type_traits>

namespace {

using rondo::float8_e4m3;
using rondo::float8_e5m2;
using e4m3 = small_float_oracle<float8_e4m3, std::uint8_t, 4, 3, false>;
using e5m2 = small_float_oracle<float8_e5m2, std::uint8_t, 5, 2, true>;

static_assert(sizeof(float8_e4m3) == 1 && std::is_trivially_copyable_v<float8_e4m3>);
static_assert(sizeof(float8_e5m2) == 1 && std::is_trivially_copyable_v<float8_e5m2>);
static_assert(!std::is_same_v<float8_e4m3, float8_e5m2>);
static_assert(float8_e4m3(1.5F) + 1 == 2.5F && float8_e5m2(-2.0F) < float8_e4m3(1.0F));

TEST(float8_e4m3, every_pattern_survives_the_way_through_float) {
  e4m3::every_pattern_survives_the_way_through_float();
}
TEST(float8_e4m3, a_sample_of_all_floats_rounds_to_nearest_even) {
  e4m3::a_sample_of_all_floats_rounds_to_nearest_even();
}
TEST(float8_e4m3, every_halfway_case_rounds_to_even) { e4m3::every_halfway_case_rounds_to_even(); }
TEST(float8_e4m3, limits_describe_the_format) { e4m3::limits_describe_the_format(); }
TEST(float8_e4m3, special_values_stay_special) { e4m3::special_values_stay_special(); }

TEST(float8_e4m3, beyond_448_there_is_only_nan) {
  EXPECT_EQ(std::numeric_limits<float8_e4m3>::max(), 448.0F);
  EXPECT_EQ(float8_e4m3(464.0F), 448.0F);
  EXPECT_TRUE(std::isnan(static_cast<float>(float8_e4m3(464.1F))));
  EXPECT_TRUE(std::isnan(static_cast<float>(float8_e4m3(-1e30F))));
}

TEST(float8_e5m2, every_pattern_survives_the_way_through_float) {
  e5m2::every_pattern_survives_the_way_through_float();
}
TEST(float8_e5m2, a_sample_of_all_floats_rounds_to_nearest_even) {
  e5m2::a_sample_of_all_floats_rounds_to_nearest_even();
}
TEST(float8_e5m2, every_halfway_case_rounds_to_even) { e5m2::every_halfway_case_rounds_to_even(); }
TEST(float8_e5m2, limits_describe_the_format) { e5m2::limits_describe_the_format(); }
TEST(float8_e5m2, special_values_stay_special) { e5m2::special_values_stay_special(); }

TEST(float8_e5m2, beyond_57344_there_is_infinity) {
  EXPECT_EQ(std::numeric_limits<float8_e5m2>::max(), 57344.0F);
  EXPECT_EQ(float8_e5m2(61439.0F), 57344.0F);
  EXPECT_TRUE(std::isinf(static_cast<float>(float8_e5m2(61440.0F))));
}

}  // namespace
