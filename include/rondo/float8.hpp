#pragma once

#include <rondo/detail/small_float.hpp>

#include <cstdint>

namespace rondo::inline v0 {

/// OCP E4M3: 4 bits of exponent, 3 of mantissa, largest value 448, no infinity. What rounds to more than 448 is NaN.
using float8_e4m3 = detail::small_float<std::uint8_t, 4, 3, false>;

/// OCP E5M2: 5 bits of exponent, 2 of mantissa, largest finite value 57344, with infinities.
using float8_e5m2 = detail::small_float<std::uint8_t, 5, 2>;

}  // namespace rondo::inline v0
