#pragma once

#include <rondo/config.hpp>

#include <cstdint>

namespace rondo::inline v0::detail {

/// What a NaN becomes when it is rounded to a narrow format.
enum class nan_sign : bool {
  kept,    ///< the quiet NaN of its sign
  dropped  ///< the one quiet NaN
};

/// How a narrow format is laid out, and the way from it to float and back, rounded to nearest even.
///
/// I is std::int32_t and F is float, or both are vectors of as many of them: the same text for one number and for a
/// register full, so that both give the same bits. Results are arguments, because how a vector is returned depends on
/// the instruction set. Neither direction reads or makes a subnormal float, which flush-to-zero would take away.
///
/// Sources: IEEE 754-2019 section 3.4 (binary16); OCP 8-bit Floating Point Specification 1.0, section 5 (E4M3, E5M2).
template <int Exponent, int Mantissa, bool Infinite>
struct small_float_format {
  static constexpr int bias = (1 << (Exponent - 1)) - 1;
  static constexpr std::int32_t magnitude_mask = (1 << (Exponent + Mantissa)) - 1;
  static constexpr std::int32_t infinity = Infinite ? ((1 << Exponent) - 1) << Mantissa : magnitude_mask;
  static constexpr std::int32_t quiet_nan = Infinite ? infinity | 1 << (Mantissa - 1) : magnitude_mask;
  static constexpr bool is_upper_half = Exponent == 8;  ///< of a float

  /// Of `bits` only those of the format count.
  template <class I, class F>
  [[gnu::always_inline]] RONDO_HD static constexpr void decode(I const& bits, F& value) noexcept {
    if constexpr (is_upper_half) {
      value = __builtin_bit_cast(F, bits << shift);
    } else {
      I const magnitude = bits & magnitude_mask;
      I const sign = (bits & sign_bit) << sign_shift;
      I const wide = magnitude << shift;
      I const anchor = I{} + subnormal_anchor;
      I const subnormal =
          __builtin_bit_cast(I, __builtin_bit_cast(F, anchor | magnitude) - __builtin_bit_cast(F, anchor));
      I const special = Infinite ? wide | float_infinity : I{} + float_nan;
      I const finite = magnitude < I{} + (1 << Mantissa) ? subnormal : wide + rebias;
      value = __builtin_bit_cast(F, (magnitude < I{} + infinity ? finite : special) | sign);
    }
  }

  template <nan_sign Sign, class I, class F>
  [[gnu::always_inline]] RONDO_HD static constexpr void encode(F const& value, I& bits) noexcept {
    I const raw = __builtin_bit_cast(I, value);
    I const magnitude = raw & 0x7fffffff;
    I const sign = raw >> sign_shift & sign_bit;
    if constexpr (is_upper_half) {
      // A NaN is replaced before it is rounded: all ones would overflow.
      I const nan = Sign == nan_sign::kept ? (raw & ~0x7fffffff) | float_nan : I{} + float_nan;
      I number = magnitude > I{} + float_infinity ? nan : raw;
      round_upper_half(number);
      bits = number >> shift & (sign_bit | magnitude_mask);
    } else {
      // Added to a power of two whose last place is that of the result, the adder rounds it for us; below the normal
      // numbers that power stays the same, and so the result is a subnormal.
      constexpr std::int32_t smallest_normal = rebias + (1 << 23);
      constexpr std::int32_t overflow = rebias + (infinity << shift);
      I const clamped = magnitude < I{} + overflow ? magnitude : I{} + overflow;
      I const exponent = clamped & float_infinity;
      I const place = exponent > I{} + smallest_normal ? exponent : I{} + smallest_normal;
      I const anchor = place + (shift << 23);
      I const sum = __builtin_bit_cast(I, __builtin_bit_cast(F, clamped) + __builtin_bit_cast(F, anchor));
      I const rounded = sum - anchor + ((place - smallest_normal) >> shift);
      if constexpr (Sign == nan_sign::kept)
        bits = (magnitude > I{} + float_infinity ? I{} + quiet_nan : rounded) | sign;
      else
        bits = magnitude > I{} + float_infinity ? I{} + quiet_nan : rounded | sign;
    }
  }

  /// Rounds a float, no NaN but the one quiet one, to its upper half. What is in its lower half then means nothing.
  template <class I>
  [[gnu::always_inline]] RONDO_HD static constexpr void round_upper_half(I& bits) noexcept {
    bits = bits + ((1 << (shift - 1)) - 1) + (bits >> shift & 1);
  }

 private:
  static constexpr int shift = 23 - Mantissa;
  static constexpr int sign_shift = 31 - Exponent - Mantissa;
  static constexpr std::int32_t sign_bit = magnitude_mask + 1;
  static constexpr std::int32_t rebias = (127 - bias) << 23;
  static constexpr std::int32_t subnormal_anchor = (127 + 24 - bias - Mantissa) << 23;
  static constexpr std::int32_t float_infinity = 0x7f800000;
  static constexpr std::int32_t float_nan = 0x7fc00000;
};

}  // namespace rondo::inline v0::detail
