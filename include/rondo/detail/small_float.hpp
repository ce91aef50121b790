#pragma once

#include <rondo/config.hpp>
#include <rondo/detail/small_float_format.hpp>

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
template <std::unsigned_integral Bits, int Exponent, int Mantissa, bool Infinite = true>
class small_float {
  static_assert(1 + Exponent + Mantissa == sizeof(Bits) * CHAR_BIT);

 public:
  using format = small_float_format<Exponent, Mantissa, Infinite>;

  small_float() = default;
  RONDO_HD explicit constexpr small_float(float value) noexcept : bits_(0) {
    std::int32_t bits = 0;
    format::template encode<nan_sign::kept>(value, bits);
    bits_ = static_cast<Bits>(bits);
  }
  RONDO_HD constexpr operator float() const noexcept {
    float value = 0;
    format::decode(std::int32_t{bits_}, value);
    return value;
  }

 private:
  Bits bits_;
};

}  // namespace rondo::inline v0::detail

/// The full set of std::numeric_limits; for formats without infinity, infinity() is the quiet NaN.
template <class Bits, int Exponent, int Mantissa, bool Infinite>
class std::numeric_limits<rondo::detail::small_float<Bits, Exponent, Mantissa, Infinite>> {
  using T = rondo::detail::small_float<Bits, Exponent, Mantissa, Infinite>;
  using F = typename T::format;
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
  static constexpr int min_exponent = 2 - F::bias;
  static constexpr int min_exponent10 = (min_exponent - 1) * 30103 / 100000;
  static constexpr int max_exponent = F::bias + (Infinite ? 1 : 2);
  static constexpr int max_exponent10 = max_exponent * 30103 / 100000;
  static constexpr bool traps = false;
  static constexpr bool tinyness_before = false;

  static constexpr T min() noexcept { return pattern(1 << Mantissa); }
  static constexpr T max() noexcept { return pattern(F::infinity - 1); }
  static constexpr T lowest() noexcept { return pattern((F::infinity - 1) | (F::magnitude_mask + 1)); }
  static constexpr T epsilon() noexcept { return T(1.0f / (1 << Mantissa)); }
  static constexpr T round_error() noexcept { return T(0.5f); }
  static constexpr T infinity() noexcept { return pattern(F::infinity); }
  static constexpr T quiet_NaN() noexcept { return pattern(F::quiet_nan); }
  static constexpr T signaling_NaN() noexcept { return pattern(Infinite ? F::infinity + 1 : F::quiet_nan); }
  static constexpr T denorm_min() noexcept { return pattern(1); }
};
