#pragma once

#include <rondo/config.hpp>

#include <concepts>
#include <type_traits>

namespace rondo::inline v0::detail {

/// All ones where x is negative, else 0. A logical shift, since SSE2 has no arithmetic one for 64 bits.
template <std::signed_integral T>
[[gnu::always_inline]] RONDO_HD constexpr T negative(T x) noexcept {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(U{0} - (static_cast<U>(x) >> (sizeof(T) * 8 - 1)));
}

/// All ones where a < b, else 0. SSE2 does not compare integers of 64 bits: Warren, Hacker's Delight, section 2-12.
template <std::signed_integral T>
[[gnu::always_inline]] RONDO_HD constexpr T less(T a, T b) noexcept {
  if constexpr (sizeof(T) < 8) {
    return -static_cast<T>(a < b);
  } else {
    using U = std::make_unsigned_t<T>;
    U const x = static_cast<U>(a), y = static_cast<U>(b);
    return negative(static_cast<T>((x & ~y) | (~(x ^ y) & (x - y))));
  }
}

/// mask ? yes : no for a mask of all ones or none. A branch would draw floating point operations into itself, and g++
/// does not vectorise conditional ones, since they may trap.
template <std::signed_integral T>
[[gnu::always_inline]] RONDO_HD constexpr T select(T mask, T yes, T no) noexcept {
  return no ^ ((yes ^ no) & mask);
}

}  // namespace rondo::inline v0::detail
