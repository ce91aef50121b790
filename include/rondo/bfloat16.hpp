#pragma once

#include <rondo/detail/small_float.hpp>

#include <cstdint>

namespace rondo::inline v0 {

/// The upper half of a float: its range, with 7 bits of mantissa.
using bfloat16 = detail::small_float<std::uint16_t, 8, 7>;

}  // namespace rondo::inline v0
