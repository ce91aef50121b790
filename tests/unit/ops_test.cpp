#include <rondo/ops.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <string_view>
#include <type_traits>
#include <vector>

namespace {

using namespace rondo;

template <class T>
using limits = std::numeric_limits<T>;

/// Bits of a value, so that NaN equals itself and -0 differs from +0.
template <class T>
auto bits_of(T value) {
  using U = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                               std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                  std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
  return +std::bit_cast<U>(value);
}

template <class T>
class integer_ops : public ::testing::Test {
 protected:
  static std::vector<T> values() {
    std::vector<T> all{0, 1, 2, 3, 7, 100, static_cast<T>(-1), static_cast<T>(-2), static_cast<T>(-77)};
    for (T const edge : {limits<T>::min(), limits<T>::max()})
      for (int near = -1; near <= 1; ++near)
        all.push_back(static_cast<T>(static_cast<std::uint64_t>(edge) + static_cast<std::uint64_t>(near)));
    return all;
  }
};

using integers = ::testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                                  std::int64_t, std::uint64_t, long long, char>;
TYPED_TEST_SUITE(integer_ops, integers);

TYPED_TEST(integer_ops, sum_and_prod_wrap) {
  using T = TypeParam;
  for (T const a : this->values())
    for (T const b : this->values()) {
      auto const x = static_cast<detail::uint128>(a), y = static_cast<detail::uint128>(b);
      EXPECT_EQ(sum(a, b), static_cast<T>(x + y));
      EXPECT_EQ(prod(a, b), static_cast<T>(x * y));
      EXPECT_EQ(premul_sum(b).prepare(a), static_cast<T>(x * y));
    }
}

TYPED_TEST(integer_ops, min_max_bits_and_logic) {
  using T = TypeParam;
  for (T const a : this->values())
    for (T const b : this->values()) {
      EXPECT_EQ(min(a, b), std::min(a, b));
      EXPECT_EQ(max(a, b), std::max(a, b));
      EXPECT_EQ(bit_and(a, b), static_cast<T>(a & b));
      EXPECT_EQ(bit_or(a, b), static_cast<T>(a | b));
      EXPECT_EQ(bit_xor(a, b), static_cast<T>(a ^ b));
      EXPECT_EQ(logical_and(a, b), static_cast<T>(a && b));
      EXPECT_EQ(logical_or(a, b), static_cast<T>(a || b));
      EXPECT_EQ(logical_xor(a, b), static_cast<T>(!a != !b));
    }
}

TYPED_TEST(integer_ops, the_mean_is_exact_and_truncated_toward_zero) {
  using T = TypeParam;
  using wide = mean_accumulator_t<T>;
  for (T const a : this->values())
    for (T const b : this->values()) {
      auto const third =
          static_cast<detail::int128>(a) + static_cast<detail::int128>(b) + static_cast<detail::int128>(a);
      wide const total = avg(avg(static_cast<wide>(a), static_cast<wide>(b)), static_cast<wide>(a));
      EXPECT_EQ(avg.finish<T>(total, 3), static_cast<T>(third / 3));
    }
}

TYPED_TEST(integer_ops, the_mean_of_equal_extremes_is_that_extreme) {
  using T = TypeParam;
  constexpr int ranks = 1000;
  for (T const edge : {limits<T>::min(), limits<T>::max()}) {
    auto total = static_cast<mean_accumulator_t<T>>(edge);
    for (int r = 1; r < ranks; ++r) total = avg(total, static_cast<mean_accumulator_t<T>>(edge));
    EXPECT_EQ(avg.finish<T>(total, ranks), edge);
  }
}

template <class T>
class float_ops : public ::testing::Test {
 protected:
  static std::vector<T> values() {
    using A = accumulator_t<T>;
    std::vector<T> all;
    for (T const x :
         {T(A(0)), T(A(0.3)), T(A(1)), T(A(1.5)), T(A(-7)), T(A(96)), limits<T>::denorm_min(), limits<T>::min(),
          limits<T>::max(), limits<T>::infinity(), limits<T>::quiet_NaN(), limits<T>::signaling_NaN()}) {
      all.push_back(x);
      all.push_back(T(-A(x)));
    }
    return all;
  }
  static bool is_nan(T x) { return std::isnan(static_cast<accumulator_t<T>>(x)); }
};

using floats = ::testing::Types<float, double, float16, bfloat16, float8_e4m3, float8_e5m2>;
TYPED_TEST_SUITE(float_ops, floats);

TYPED_TEST(float_ops, sum_and_prod_round_once) {
  using T = TypeParam;
  using A = accumulator_t<T>;
  for (T const a : this->values())
    for (T const b : this->values()) {
      T const total(static_cast<A>(static_cast<long double>(A(a)) + static_cast<long double>(A(b))));
      T const product(static_cast<A>(static_cast<long double>(A(a)) * static_cast<long double>(A(b))));
      if (this->is_nan(total)) {
        EXPECT_TRUE(this->is_nan(sum(a, b)));
      } else {
        EXPECT_EQ(bits_of(sum(a, b)), bits_of(total)) << +a << " + " << +b;
      }
      if (this->is_nan(product)) {
        EXPECT_TRUE(this->is_nan(prod(a, b)));
      } else {
        EXPECT_EQ(bits_of(prod(a, b)), bits_of(product)) << +a << " * " << +b;
      }
    }
}

TYPED_TEST(float_ops, min_and_max_follow_the_total_order_and_nan_wins) {
  using T = TypeParam;
  for (T const a : this->values())
    for (T const b : this->values()) {
      T low = a < b ? a : b, high = a < b ? b : a;
      if (a == b) {
        bool const a_below = std::signbit(+a) && !std::signbit(+b);
        low = a_below ? a : b, high = a_below ? b : a;
      }
      if (this->is_nan(a) || this->is_nan(b)) low = high = limits<T>::quiet_NaN();
      EXPECT_EQ(bits_of(min(a, b)), bits_of(low)) << +a << ", " << +b;
      EXPECT_EQ(bits_of(max(a, b)), bits_of(high)) << +a << ", " << +b;
    }
}

TYPED_TEST(float_ops, results_do_not_depend_on_the_order_of_operands) {
  using T = TypeParam;
  for (T const a : this->values())
    for (T const b : this->values()) {
      EXPECT_EQ(bits_of(min(a, b)), bits_of(min(b, a)));
      EXPECT_EQ(bits_of(max(a, b)), bits_of(max(b, a)));
      EXPECT_EQ(bits_of(logical_xor(a, b)), bits_of(logical_xor(b, a)));
    }
}

TYPED_TEST(float_ops, logic_asks_for_nonzero) {
  using T = TypeParam;
  using A = accumulator_t<T>;
  T const zero(A(0)), minus_zero(A(-0.0)), small = limits<T>::denorm_min(), one(A(1));
  EXPECT_EQ(logical_and(small, one), one);
  EXPECT_EQ(logical_and(minus_zero, one), zero);
  EXPECT_EQ(logical_or(minus_zero, zero), zero);
  EXPECT_EQ(logical_or(limits<T>::quiet_NaN(), zero), one);
  EXPECT_EQ(logical_xor(small, one), zero);
  EXPECT_EQ(logical_xor(small, zero), one);
}

TYPED_TEST(float_ops, equal_values_average_to_themselves) {
  using T = TypeParam;
  using wide = mean_accumulator_t<T>;
  constexpr bool sums_in_its_own_range = limits<T>::max_exponent == limits<wide>::max_exponent;  // bfloat16 too
  for (T const x : this->values()) {
    if (sums_in_its_own_range && std::abs(+x) == limits<T>::max()) continue;
    for (int const ranks : {1, 2, 3, 5, 7, 8, 128}) {
      auto total = static_cast<wide>(x);
      for (int r = 1; r < ranks; ++r) total = avg(total, static_cast<wide>(x));
      T const mean = avg.finish<T>(total, ranks);
      bool const subnormal = std::abs(+x) < limits<T>::min();
      if (this->is_nan(x)) {
        EXPECT_TRUE(this->is_nan(mean));
      } else if (!std::is_same_v<T, wide> || subnormal || std::isinf(+x)) {
        EXPECT_EQ(bits_of(mean), bits_of(x)) << +x << " on " << ranks << " ranks";
      } else {
        EXPECT_LE(std::abs(mean / x - 1), static_cast<wide>(ranks) * limits<T>::epsilon()) << +x << " on " << ranks;
      }
    }
  }
}

TYPED_TEST(float_ops, premul_sum_scales_contributions_in_the_accumulator) {
  using T = TypeParam;
  using A = accumulator_t<T>;
  EXPECT_EQ(premul_sum(0.5F).prepare(T(A(3))), T(A(1.5)));
  EXPECT_EQ(premul_sum(T(A(0.25))).prepare(T(A(-8))), T(A(-2)));
  EXPECT_EQ(premul_sum(3).prepare(T(A(1.5))), T(A(4.5)));
  EXPECT_EQ(premul_sum(2.0)(T(A(1)), T(A(2))), T(A(3)));
}

TEST(ops, every_pair_of_float16_nans_gives_the_same_nan) {
  for (unsigned a = 0x7c01; a < 0x8000; a += 7)
    for (unsigned b = 0xfc01; b < 0x10000; b += 61) {
      auto const x = std::bit_cast<float16>(static_cast<std::uint16_t>(a));
      auto const y = std::bit_cast<float16>(static_cast<std::uint16_t>(b));
      ASSERT_EQ(bits_of(min(x, y)), bits_of(limits<float16>::quiet_NaN()));
      ASSERT_EQ(bits_of(max(y, x)), bits_of(limits<float16>::quiet_NaN()));
    }
}

TEST(ops, bool_is_a_number_of_one_bit) {
  EXPECT_TRUE(sum(true, true));
  EXPECT_FALSE(prod(true, false));
  EXPECT_TRUE(max(false, true));
  EXPECT_FALSE(bit_xor(true, true));
}

TEST(ops, run_in_constant_expressions) {
  static_assert(sum(std::int32_t{2147483647}, std::int32_t{1}) == limits<std::int32_t>::min());
  static_assert(prod(std::uint16_t{65535}, std::uint16_t{65535}) == 1);
  static_assert(std::bit_cast<std::uint32_t>(min(0.0F, -0.0F)) == 0x80000000U);
  static_assert(std::bit_cast<std::uint64_t>(max(limits<double>::signaling_NaN(), 1.0)) == 0x7ff8000000000000U);
  static_assert(avg.finish<std::int8_t>(-7, 2) == -3);
}

struct pair_of_floats {
  float x, y;
};

auto const hypotenuse = [](float a, float b) noexcept { return std::sqrt(a * a + b * b); };
[[maybe_unused]] auto const careless = [](float a, float b) { return a + b; };
[[maybe_unused]] auto const of_halves = [](float16 a, float16 b) noexcept { return float16(a + b); };

TEST(ops, the_concept_accepts_what_can_be_folded) {
  static_assert(reduce_op<sum_op, float> && reduce_op<sum_op, float16> && reduce_op<max_op, std::uint8_t>);
  static_assert(reduce_op<decltype(hypotenuse), float> && reduce_op<decltype(hypotenuse), bfloat16>);
  static_assert(reduce_op<decltype(of_halves), float16> && !reduce_op<decltype(of_halves), bfloat16>);
  static_assert(!reduce_op<bit_and_op, float> && !reduce_op<bit_xor_op, float16> && reduce_op<bit_or_op, bool>);
  static_assert(!reduce_op<decltype(careless), float>);
  static_assert(!reduce_op<sum_op, pair_of_floats> && !reduce_op<sum_op, std::vector<float>>);
  static_assert(element<pair_of_floats> && !element<float const> && !element<float&> && !element<std::vector<int>>);
}

TEST(ops, only_what_is_declared_commutative_is) {
  static_assert(is_commutative_v<sum_op> && is_commutative_v<premul_sum_op<float>> && is_commutative_v<min_op>);
  static_assert(!is_commutative_v<decltype(hypotenuse)>);
  static_assert(is_commutative_v<decltype(commutative(hypotenuse))>);
  static_assert(reduce_op<decltype(commutative(hypotenuse)), float> &&
                !reduce_op<decltype(commutative(careless)), float>);
  EXPECT_EQ(commutative(hypotenuse)(3.0F, 4.0F), 5.0F);
}

TEST(ops, traits_say_what_surrounds_the_fold) {
  using of_sum = op_traits<sum_op, float16>;
  static_assert(!of_sum::widens && !of_sum::prepares && !of_sum::finishes);
  static_assert(std::is_same_v<of_sum::wide, float16> && std::is_same_v<of_sum::accumulator, float>);
  using of_mean = op_traits<avg_op, float16>;
  static_assert(of_mean::widens && !of_mean::prepares && of_mean::finishes && std::is_same_v<of_mean::wide, float>);
  static_assert(!op_traits<avg_op, double>::widens && op_traits<avg_op, double>::finishes);
  static_assert(sizeof(op_traits<avg_op, std::uint64_t>::wide) == 16);
  using of_premul = op_traits<premul_sum_op<float>, float>;
  static_assert(!of_premul::widens && of_premul::prepares && !of_premul::finishes);
  using of_lambda = op_traits<decltype(hypotenuse), pair_of_floats>;
  static_assert(!of_lambda::widens && !of_lambda::prepares && !of_lambda::finishes);
}

TEST(ops, names_fit_and_tell_apart) {
  EXPECT_EQ(type_name<float>(), "float32");
  EXPECT_EQ(type_name<double>(), "float64");
  EXPECT_EQ(type_name<float8_e4m3>(), "float8_e4m3");
  EXPECT_EQ(type_name<float8_e5m2>(), "float8_e5m2");
  EXPECT_EQ(type_name<long>(), type_name<long long>());
  EXPECT_EQ(type_name<unsigned char>(), "uint8");
  EXPECT_EQ(type_name<bool>(), "bool");
  EXPECT_EQ(op_name<sum_op>(), "sum");
  EXPECT_EQ(op_name<logical_xor_op>(), "logical_xor");
  EXPECT_EQ(op_name<decltype(premul_sum(2))>(), "premul_sum");

  auto const one = [](float a, float b) noexcept { return a + b; };
  auto const two = [](float a, float b) noexcept { return a * b; };
  std::set<std::string_view> const names{op_name<decltype(one)>(),
                                         op_name<decltype(two)>(),
                                         op_name<decltype(commutative(one))>(),
                                         type_name<pair_of_floats>(),
                                         type_name<std::array<pair_of_floats, 2>>(),
                                         type_name<std::array<pair_of_floats, 3>>()};
  EXPECT_EQ(names.size(), 6U);
  for (std::string_view const name : names) EXPECT_LE(name.size(), 15U) << name;
  EXPECT_TRUE(op_name<decltype(one)>().starts_with("lambda_"));
  EXPECT_TRUE((type_name<std::array<pair_of_floats, 2>>().starts_with("array_")));
}

}  // namespace
