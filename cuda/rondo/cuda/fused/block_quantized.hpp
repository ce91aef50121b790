#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/pack.hpp>
#include <rondo/float8.hpp>
#include <rondo/fused/finite.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace rondo::inline v0::device {

/// `Count` floats as numbers of 8 bits and one scale: the largest magnitude is the largest number that Q has, and the
/// others are rounded to nearest even. Q is std::int8_t or an 8-bit float.
///
/// A block of magnitudes below 2^-126 times the largest number of Q becomes zeros. One with an infinity or a NaN
/// becomes NaN as a whole: nothing that is not finite is lost on the way.
template <class Q, std::size_t Count>
struct quantized_block {
  static_assert(std::same_as<Q, std::int8_t> || rondo::detail::is_small_float<Q>,
                "blocks are quantised to std::int8_t, float8_e4m3 or float8_e5m2");

  pack<Q, Count> numbers;
  float scale;

  RONDO_HD static quantized_block of(float const (&x)[Count]) noexcept {
    float largest = 0;
    bool finite = true;
    for (float const value : x) {
      float const magnitude = value < 0 ? -value : value;
      largest = largest < magnitude ? magnitude : largest;
      finite = finite && is_finite(value);
    }
    quantized_block y{};
    y.scale = finite ? largest / top : std::numeric_limits<float>::quiet_NaN();
    if (!finite || largest < smallest) {
      if (finite) y.scale = 0;
      return y;
    }
    float const inverse = top / largest;
    for (std::size_t j = 0; j < Count; ++j) y.numbers.values[j] = round(x[j] * inverse);
    return y;
  }

  RONDO_HD float operator[](std::size_t j) const noexcept { return widen(numbers[j]) * scale; }

 private:
  static constexpr float top = static_cast<float>(std::numeric_limits<Q>::max());
  static constexpr float smallest = top * 0x1p-126F;  // largest / top is a normal number, and so is its inverse

  /// Added to it, a float is rounded to a whole number, which lies in its lowest bits then: quicker than conversions,
  /// which a GPU has few units for.
  static constexpr float anchor = 0x1.8p23F;

  RONDO_HD static Q round(float x) noexcept {
    // A product may be rounded to a little more than the top.
    x = x > top ? top : x < -top ? -top : x;
    if constexpr (std::same_as<Q, std::int8_t>)
      return static_cast<Q>(
          static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(x + anchor) - std::bit_cast<std::uint32_t>(anchor)));
    else
      return static_cast<Q>(x);
  }

  RONDO_HD static float widen(Q number) noexcept {
    if constexpr (std::same_as<Q, std::int8_t>)
      return std::bit_cast<float>(std::bit_cast<std::int32_t>(anchor) + number) - anchor;
    else
      return static_cast<float>(number);
  }
};

}  // namespace rondo::inline v0::device
