#pragma once

#include <rondo/config.hpp>
#include <rondo/detail/branch_free.hpp>

#include <bit>
#include <climits>
#include <concepts>
#include <cstdint>
#include <limits>

namespace rondo::inline v0::detail {

/// A floating point number of 8 or 16 bits, for storage: it converts to float exactly and without being asked, so that
/// comparing and computing happen in float, and back only explicitly, rounded to nearest even.
///
/// Subnormals survive, whatever the processor's flush-to-zero mode says. A NaN becomes the quiet NaN of its sign.
/// Values beyond the largest finite one become infinity, or NaN where the format has no infinity.
///
/// Sources: IEEE 754-2019 section 3.4 (binary16); OCP 8-bit Floating Point Specification 1.0, section 5 (E4M3, E5M2).
template <std::unsigned_integral Bits, int Exponent, int Mantissa, bool Infinite = true>
class small_float {
  static_assert(1 + Exponent + Mantissa == sizeof(Bits) * CHAR_BIT);

 public:
  small_float() = default;
  RONDO_HD explicit constexpr small_float(float value) noexcept : bits_(encode(value)) {}
  RONDO_HD constexpr operator float() const noexcept { return decode(bits_); }

 private:
  friend class std::numeric_limits<small_float>;

  // Signed integers throughout: SSE2 compares only those, and these loops have to vectorise on every x86-64.
  static constexpr int shift = 23 - Mantissa;
  static constexpr int bias = (1 << (Exponent - 1)) - 1;
  static constexpr std::int32_t rebias = (127 - bias) << 23;
  static constexpr std::int32_t float_infinity = 0x7f800000;
  static constexpr std::int32_t magnitude_mask = (1 << (Exponent + Mantissa)) - 1;
  static constexpr std::int32_t infinity = Infinite ? ((1 << Exponent) - 1) << Mantissa : magnitude_mask;
  static constexpr std::int32_t quiet_nan = Infinite ? infinity | 1 << (Mantissa - 1) : magnitude_mask;

  RONDO_HD static constexpr Bits encode(float value) noexcept {
    std::int32_t const bits = std::bit_cast<std::int32_t>(value);
    std::int32_t const magnitude = bits & 0x7fffffff;
    std::int32_t const almost_half = (1 << (shift - 1)) - 1 + (magnitude >> shift & 1);
    // Unsigned, since a NaN may overflow here; it is replaced below.
    std::uint32_t const raised =
        static_cast<std::uint32_t>(magnitude - rebias) + static_cast<std::uint32_t>(almost_half);
    std::int32_t rounded = static_cast<std::int32_t>(raised >> shift);
    rounded = select(less(rounded, infinity), rounded, infinity);
    if constexpr (rebias != 0) {
      // The last place of this power of two is the smallest subnormal, so that the adder rounds for us.
      constexpr std::int32_t anchor = (127 + 24 - bias - Mantissa) << 23;
      constexpr std::int32_t smallest_normal = rebias + (1 << 23);
      std::int32_t const clamped = select(less(magnitude, smallest_normal), magnitude, smallest_normal);
      float const sum = std::bit_cast<float>(clamped) + std::bit_cast<float>(anchor);
      rounded = select(less(magnitude, smallest_normal), std::bit_cast<std::int32_t>(sum) - anchor, rounded);
    }
    rounded = select(less(float_infinity, magnitude), quiet_nan, rounded);
    return static_cast<Bits>(rounded | (bits >> 31 & (magnitude_mask + 1)));
  }

  RONDO_HD static constexpr float decode(Bits bits) noexcept {
    std::int32_t const magnitude = bits & magnitude_mask;
    std::int32_t const sign = (bits & (magnitude_mask + 1)) << (31 - Exponent - Mantissa);
    std::int32_t wide = magnitude << shift;
    if constexpr (rebias != 0) {
      constexpr float smallest = std::bit_cast<float>((127 + 1 - bias - Mantissa) << 23);
      std::int32_t const subnormal = std::bit_cast<std::int32_t>(static_cast<float>(magnitude) * smallest);
      std::int32_t const special = Infinite ? wide | float_infinity : float_infinity | 1 << 22;
      wide = select(less(magnitude, infinity), wide + rebias, special);
      wide = select(less(magnitude, 1 << Mantissa), subnormal, wide);
    }
    return std::bit_cast<float>(wide | sign);
  }

  Bits bits_;
};

}  // namespace rondo::inline v0::detail

/// The full set of std::numeric_limits; for formats without infinity, infinity() is the quiet NaN.
template <class Bits, int Exponent, int Mantissa, bool Infinite>
class std::numeric_limits<rondo::detail::small_float<Bits, Exponent, Mantissa, Infinite>> {
  using T = rondo::detail::small_float<Bits, Exponent, Mantissa, Infinite>;
  static constexpr T pattern(int bits) noexcept { return std::bit_cast<T>(static_cast<Bits>(bits)); }

 public:
  static constexpr bool is_specialized = true;
  static constexpr bool is_signed = true;
  static constexpr bool is_integer = false;
  static constexpr bool is_exact = false;
  static constexpr bool has_infinity = Infinite;
  static constexpr bool has_quiet_NaN = true;
  static constexpr bool has_signaling_NaN = Infinite;
  static constexpr float_denorm_style has_denorm = denorm_present;
  static constexpr bool has_denorm_loss = false;
  static constexpr float_round_style round_style = round_to_nearest;
  static constexpr bool is_iec559 = Infinite;
  static constexpr bool is_bounded = true;
  static constexpr bool is_modulo = false;
  static constexpr int digits = Mantissa + 1;
  static constexpr int digits10 = Mantissa * 30103 / 100000;
  static constexpr int max_digits10 = 2 + digits * 30103 / 100000;
  static constexpr int radix = 2;
  static constexpr int min_exponent = 2 - T::bias;
  static constexpr int min_exponent10 = (min_exponent - 1) * 30103 / 100000;
  static constexpr int max_exponent = T::bias + (Infinite ? 1 : 2);
  static constexpr int max_exponent10 = max_exponent * 30103 / 100000;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;

  static constexpr T min() noexcept { return pattern(1 << Mantissa); }
  static constexpr T max() noexcept { return pattern(T::infinity - 1); }
  static constexpr T lowest() noexcept { return pattern((T::infinity - 1) | (T::magnitude_mask + 1)); }
  static constexpr T epsilon() noexcept { return T(1.0f / (1 << Mantissa)); }
  static constexpr T round_error() noexcept { return T(0.5f); }
  static constexpr T infinity() noexcept { return pattern(T::infinity); }
  static constexpr T quiet_NaN() noexcept { return pattern(T::quiet_nan); }
  static constexpr T signaling_NaN() noexcept { return pattern(Infinite ? T::infinity + 1 : T::quiet_nan); }
  static constexpr T denorm_min() noexcept { return pattern(1); }
};
