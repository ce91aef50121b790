#include "fold_tools.hpp"

#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

namespace {

using namespace rondo;
using namespace fold_tools;

template <class T>
class fold_of_floats : public ::testing::Test {};

using floats = ::testing::Types<float, double, float16, bfloat16, float8_e4m3, float8_e5m2>;
TYPED_TEST_SUITE(fold_of_floats, floats);

TYPED_TEST(fold_of_floats, sum) { folds_like<TypeParam>(sum); }
TYPED_TEST(fold_of_floats, prod) { folds_like<TypeParam>(prod); }
TYPED_TEST(fold_of_floats, min) { folds_like<TypeParam>(rondo::min); }
TYPED_TEST(fold_of_floats, max) { folds_like<TypeParam>(rondo::max); }
TYPED_TEST(fold_of_floats, logical_or) { folds_like<TypeParam>(logical_or); }

TYPED_TEST(fold_of_floats, a_generic_lambda_is_called_with_the_accumulator) {
  using A = accumulator_t<TypeParam>;
  auto const width = [](auto, auto b) noexcept { return static_cast<A>(sizeof b); };
  folds_like<TypeParam>(width);
  EXPECT_EQ(detail::combine(width, TypeParam{}, TypeParam{}), static_cast<A>(sizeof(A)));
}

TEST(fold_lanes, nan_zeros_and_subnormals_in_every_lane) {
  using limits = std::numeric_limits<float>;
  float const values[] = {
      limits::quiet_NaN(),   -limits::quiet_NaN(), limits::signaling_NaN(), 0.0F, -0.0F, limits::denorm_min(),
      -limits::denorm_min(), limits::infinity(),   -limits::infinity(),     1.0F};
  for (float const x : values)
    for (float const y : values)
      for (std::size_t lane = 0; lane < 9; ++lane) {
        std::vector<float> a(9, 1.0F), b(9, 2.0F), low(9), high(9);
        a[lane] = x, b[lane] = y;
        auto const bytes = [](std::vector<float>& v) { return reinterpret_cast<std::byte*>(v.data()); };
        make_reduction<float>(rondo::min)(bytes(low), bytes(a), bytes(b), 9);
        make_reduction<float>(rondo::max)(bytes(high), bytes(a), bytes(b), 9);
        float const least = rondo::min(y, x), greatest = rondo::max(y, x);
        ASSERT_EQ(std::memcmp(&low[lane], &least, sizeof x), 0) << x << ", " << y;
        ASSERT_EQ(std::memcmp(&high[lane], &greatest, sizeof x), 0) << x << ", " << y;
        ASSERT_EQ(low[(lane + 1) % 9], 1.0F);
        ASSERT_EQ(high[(lane + 1) % 9], 2.0F);
      }
}

}  // namespace
