#pragma once

#include <rondo/detail/small_float.hpp>

#include <cstdint>

namespace rondo::inline v0 {

/// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa, largest finite value 65504.
using float16 = detail::small_float<std::uint16_t, 5, 10>;

}  // namespace rondo::inline v0
