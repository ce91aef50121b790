#pragma once

#include <rondo/detail/small_float.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>

/// An independent account of the narrow floats, in double and by the definition of the format.
template <class T, class Bits, int exponent_bits, int mantissa_bits, bool infinite>
struct small_float_oracle {
  static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
  static constexpr unsigned patterns = 1U << (1 + exponent_bits + mantissa_bits);
  static constexpr unsigned top = (1U << exponent_bits) - 1;
  static constexpr double largest = std::numeric_limits<T>::max();

  static T pattern(unsigned bits) { return std::bit_cast<T>(static_cast<Bits>(bits)); }
  static unsigned bits(T value) { return std::bit_cast<Bits>(value); }

  static double decode(unsigned pattern) {
    unsigned const fraction = pattern & ((1U << mantissa_bits) - 1);
    unsigned const exponent = (pattern >> mantissa_bits) & top;
    double const sign = pattern >> (exponent_bits + mantissa_bits) ? -1 : 1;
    if (infinite && exponent == top) return fraction ? std::nan("") : sign * std::numeric_limits<double>::infinity();
    if (!infinite && exponent == top && fraction == (1U << mantissa_bits) - 1) return std::nan("");
    double const significand = exponent == 0 ? fraction : fraction + (1U << mantissa_bits);
    return sign * std::ldexp(significand, (exponent == 0 ? 1 : static_cast<int>(exponent)) - bias - mantissa_bits);
  }

  /// The value that x must round to.
  static double round(float x) {
    if (std::isnan(x)) return x;
    int exponent = static_cast<int>(std::bit_cast<std::uint32_t>(x) >> 23 & 255) - 127;
    if (exponent < 1 - bias) exponent = 1 - bias;
    double const place = std::bit_cast<double>(static_cast<std::int64_t>(1023 + exponent - mantissa_bits) << 52);
    double const rounded = std::nearbyint(x / place) * place;
    if (std::abs(rounded) <= largest) return rounded;
    return infinite ? std::copysign(std::numeric_limits<double>::infinity(), x) : std::nan("");
  }

  static bool same(double a, double b) {
    return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
  }

  static void every_pattern_survives_the_way_through_float() {
    for (unsigned i = 0; i < patterns; ++i) {
      T const value = pattern(i);
      ASSERT_TRUE(same(static_cast<float>(value), decode(i))) << "pattern " << i;
      T const back(static_cast<float>(value));
      if (std::isnan(decode(i))) {
        ASSERT_TRUE(std::isnan(static_cast<float>(back))) << "pattern " << i;
      } else {
        ASSERT_EQ(bits(back), i);
      }
    }
  }

  static void rounds_like_the_oracle(float x) {
    ASSERT_TRUE(same(static_cast<float>(T(x)), round(x)))
        << x << " became " << static_cast<float>(T(x)) << " instead of " << round(x);
  }

  /// More than 10^7 floats, evenly spread over all patterns.
  static void a_sample_of_all_floats_rounds_to_nearest_even() {
    unsigned wrong = 0;
    std::uint32_t first_wrong = 0;
    for (std::uint64_t i = 0; i < 1ULL << 32; i += 421) {
      float const x = std::bit_cast<float>(static_cast<std::uint32_t>(i));
      if (!same(static_cast<float>(T(x)), round(x)) && wrong++ == 0) first_wrong = static_cast<std::uint32_t>(i);
    }
    ASSERT_EQ(wrong, 0U) << "first: float of pattern " << first_wrong;
  }

  /// Between every two neighbours: the middle, and the floats just beside it.
  static void every_halfway_case_rounds_to_even() {
    for (unsigned i = 0; i + 1 < patterns / 2; ++i) {
      double const low = decode(i), high = std::isfinite(decode(i + 1)) ? decode(i + 1) : 2 * low - decode(i - 1);
      if (!std::isfinite(low)) break;
      float const middle = static_cast<float>(low / 2 + high / 2);
      for (float const x :
           {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, std::numeric_limits<float>::max())}) {
        rounds_like_the_oracle(x);
        rounds_like_the_oracle(-x);
      }
    }
  }

  static void limits_describe_the_format() {
    using limits = std::numeric_limits<T>;
    EXPECT_EQ(limits::denorm_min(), std::ldexp(1.0, 1 - bias - mantissa_bits));
    EXPECT_EQ(limits::min(), std::ldexp(1.0, 1 - bias));
    EXPECT_EQ(limits::lowest(), -largest);
    EXPECT_EQ(limits::epsilon(), std::ldexp(1.0, -mantissa_bits));
    EXPECT_EQ(limits::min_exponent, std::ilogb(static_cast<float>(limits::min())) + 1);
    EXPECT_EQ(limits::max_exponent, std::ilogb(static_cast<float>(limits::max())) + 1);
    EXPECT_EQ(limits::max_exponent10, static_cast<int>(std::floor(std::log10(largest))));
    EXPECT_EQ(limits::min_exponent10, static_cast<int>(std::ceil(std::log10(static_cast<float>(limits::min())))));
    EXPECT_TRUE(std::isnan(static_cast<float>(limits::quiet_NaN())));
    EXPECT_EQ(limits::has_infinity, infinite);
    EXPECT_EQ(std::isinf(static_cast<float>(limits::infinity())), infinite);
    EXPECT_TRUE(std::isnan(static_cast<float>(limits::signaling_NaN())));
  }

  static void special_values_stay_special() {
    float const infinity = std::numeric_limits<float>::infinity();
    for (float const sign : {1.0F, -1.0F}) {
      EXPECT_TRUE(same(static_cast<float>(T(sign * infinity)), infinite ? sign * infinity : std::nan("")));
      EXPECT_TRUE(same(static_cast<float>(T(sign * 0.0F)), sign * 0.0F));
    }
    // Quiet, signalling, with either sign and a payload that the narrow format cannot hold.
    for (std::uint32_t const nan : {0x7fc00000U, 0x7f800001U, 0xff800001U, 0xffffffffU})
      EXPECT_EQ(bits(T(std::bit_cast<float>(nan))) | patterns / 2,
                bits(std::numeric_limits<T>::quiet_NaN()) | patterns / 2);
  }
};
