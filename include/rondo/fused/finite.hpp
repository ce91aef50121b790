#pragma once

#include <rondo/config.hpp>
#include <rondo/element.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace rondo::inline v0 {

/// Neither infinite nor NaN. Asks the bits, because -ffast-math lets compilers assume that no value is either.
RONDO_HD constexpr bool is_finite(float x) noexcept {
  return (std::bit_cast<std::uint32_t>(x) & 0x7f800000U) != 0x7f800000U;
}
RONDO_HD constexpr bool is_finite(double x) noexcept {
  constexpr std::uint64_t exponent = 0x7ff0000000000000U;
  return (std::bit_cast<std::uint64_t>(x) & exponent) != exponent;
}

/// Is any value infinite or NaN? For float, double and the narrow floats, which are asked as floats.
template <class T>
RONDO_HD constexpr bool found_non_finite(std::span<T const> values) noexcept {
  using wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  bool found = false;
  for (std::size_t i = 0; i < values.size(); ++i) found |= !is_finite(static_cast<wide>(values[i]));
  return found;
}

}  // namespace rondo::inline v0
