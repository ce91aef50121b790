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
/// Bits is std::int32_t and F is float, or both are vectors of as many of them: the same text for one number and for a
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
  template <class Bits, class F>
  [[gnu::always_inline]] RONDO_HD static constexpr void decode(Bits const& bits, F& value) noexcept {
    if constexpr (is_upper_half) {
      value = __builtin_bit_cast(F, bits << shift);
    } else {
      Bits const magnitude = bits & magnitude_mask;
      Bits const sign = (bits & sign_bit) << sign_shift;
      Bits const wide = magnitude << shift;
      Bits const anchor = Bits{} + subnormal_anchor;
      Bits const subnormal =
          __builtin_bit_cast(Bits, __builtin_bit_cast(F, anchor | magnitude) - __builtin_bit_cast(F, anchor));
      Bits const special = Infinite ? wide | float_infinity : Bits{} + float_nan;
      Bits const finite = magnitude < Bits{} + (1 << Mantissa) ? subnormal : wide + rebias;
      value = __builtin_bit_cast(F, (magnitude < Bits{} + infinity ? finite : special) | sign);
    }
  }

  template <nan_sign Sign, class Bits, class F>
  [[gnu::always_inline]] RONDO_HD static constexpr void encode(F const& value, Bits& bits) noexcept {
    Bits const raw = __builtin_bit_cast(Bits, value);
    Bits const magnitude = raw & 0x7fffffff;
    Bits const sign = raw >> sign_shift & sign_bit;
    if constexpr (is_upper_half) {
      // A NaN is replaced before it is rounded: all ones would overflow.
      Bits const nan = Sign == nan_sign::kept ? (raw & ~0x7fffffff) | float_nan : Bits{} + float_nan;
      Bits number = magnitude > Bits{} + float_infinity ? nan : raw;
      round_upper_half(number);
      bits = number >> shift & (sign_bit | magnitude_mask);
    } else {
      // Added to a power of two whose last place is that of the result, the adder rounds it for us; below the normal
      // numbers that power stays the same, and so the result is a subnormal.
      constexpr std::int32_t smallest_normal = rebias + (1 << 23);
      constexpr std::int32_t overflow = rebias + (infinity << shift);
      Bits const clamped = magnitude < Bits{} + overflow ? magnitude : Bits{} + overflow;
      Bits const exponent = clamped & float_infinity;
      Bits const place = exponent > Bits{} + smallest_normal ? exponent : Bits{} + smallest_normal;
      Bits const anchor = place + (shift << 23);
      Bits const sum = __builtin_bit_cast(Bits, __builtin_bit_cast(F, clamped) + __builtin_bit_cast(F, anchor));
      Bits const rounded = sum - anchor + ((place - smallest_normal) >> shift);
      if constexpr (Sign == nan_sign::kept)
        bits = (magnitude > Bits{} + float_infinity ? Bits{} + quiet_nan : rounded) | sign;
      else
        bits = magnitude > Bits{} + float_infinity ? Bits{} + quiet_nan : rounded | sign;
    }
  }

  /// Rounds a float, no NaN but the one quiet one, to its upper half. What is in its lower half then means nothing.
  template <class Bits>
  [[gnu::always_inline]] RONDO_HD static constexpr void round_upper_half(Bits& bits) noexcept {
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
