#include "fold_tools.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace {

using namespace rondo;
using namespace fold_tools;

template <class T>
class fold_passes : public ::testing::Test {};

using types = ::testing::Types<float, double, float16, bfloat16, float8_e4m3, float8_e5m2, std::int8_t, std::uint8_t,
                               std::int16_t, std::uint16_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(fold_passes, types);

TYPED_TEST(fold_passes, the_mean_of_ranks_through_the_wide_type) {
  using T = TypeParam;
  using wide = typename op_traits<avg_op, T>::wide;
  constexpr int ranks = 5;
  constexpr std::size_t count = 67;
  std::mt19937 random(3);
  skewed<wide> total(count, 3), widened(count, 1);
  std::vector<long double> exact(count, 0);
  reduction const add = make_reduction<wide>(avg);
  for (int r = 0; r < ranks; ++r) {
    skewed<T> mine(count, 1);
    for (std::size_t i = 0; i < count; ++i) {
      mine.set(i, random_value<T>(random));
      exact[i] += static_cast<long double>(static_cast<accumulator_t<T>>(mine.get(i)));
    }
    detail::convert_range<wide, T>(widened.data(), mine.data(), count);
    if (r == 0)
      detail::convert_range<wide, T>(total.data(), mine.data(), count);
    else
      add(total.data(), total.data(), widened.data(), count);
  }
  detail::finish_range<T>(avg, total.data(), total.data(), count, ranks);  // in place: T is not wider
  for (std::size_t i = 0; i < count; ++i) {
    T const got = detail::load<T>(total.data() + i * sizeof(T));
    if constexpr (std::is_integral_v<T>)
      ASSERT_EQ(got, static_cast<T>(std::trunc(exact[i] / ranks)));
    else
      ASSERT_NEAR(static_cast<double>(static_cast<accumulator_t<T>>(got)), static_cast<double>(exact[i] / ranks),
                  static_cast<double>(static_cast<accumulator_t<T>>(std::numeric_limits<T>::epsilon())) * 8);
  }
}

TYPED_TEST(fold_passes, prepare_and_scale_multiply) {
  using T = TypeParam;
  using A = accumulator_t<T>;
  constexpr std::size_t count = 21;
  skewed<T> in(count, 1), out(count, 3);
  for (std::size_t i = 0; i < count; ++i) in.set(i, static_cast<T>(static_cast<A>(i)));
  detail::scale_range<T>(3, out.data(), in.data(), count);
  detail::prepare_range<T>(premul_sum(3), in.data(), in.data(), count);
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(out.get(i), static_cast<T>(3 * static_cast<A>(static_cast<T>(static_cast<A>(i)))));
    ASSERT_EQ(in.get(i), out.get(i));
  }
  EXPECT_TRUE(in.guards_intact() && out.guards_intact());
}

}  // namespace
