#pragma once

#include <rondo/config.hpp>
#include <rondo/detail/branch_free.hpp>
#include <rondo/reduce_op.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace rondo::inline v0::detail {

template <class T>
[[gnu::always_inline]] inline T load(std::byte const* from) noexcept {
  std::array<std::byte, sizeof(T)> bytes;  // T may have no default constructor
  std::memcpy(bytes.data(), from, sizeof(T));
  return std::bit_cast<T>(bytes);
}

template <class T>
[[gnu::always_inline]] inline void store(std::byte* to, T const& value) noexcept {
  std::memcpy(to, &value, sizeof(T));
}

/// Any NaN becomes the one quiet NaN. Which operand gives a NaN its sign and payload is up to the compiler, loop by
/// loop, and ranks that compute the same total must end with the same bits. Without a branch, which would be threaded
/// through the sums that follow.
template <class T>
[[gnu::always_inline]] RONDO_HD constexpr T one_nan(T const& value) noexcept {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    using bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    constexpr bits nan = std::bit_cast<bits>(std::numeric_limits<T>::quiet_NaN());
    return std::bit_cast<T>(select(-static_cast<bits>(value != value), nan, std::bit_cast<bits>(value)));
  } else if constexpr (std::is_floating_point_v<T> || is_small_float<T>) {
    return value == value ? value : std::numeric_limits<T>::quiet_NaN();
  } else {
    return value;
  }
}

/// op(a, b), in float for the narrow floats where op takes floats: one rounding.
template <class T, class Op>
[[gnu::always_inline]] RONDO_HD constexpr T combine(Op const& op, T const& a, T const& b) noexcept {
  using A = accumulator_t<T>;
  if constexpr (folds<Op, A>)
    return static_cast<T>(one_nan<A>(op(static_cast<A>(a), static_cast<A>(b))));
  else
    return one_nan(static_cast<T>(op(a, b)));
}

/// x[0] = the canonical fold (see recursive_doubling) of K elements.
template <std::size_t K, class T, class Op>
[[gnu::always_inline]] RONDO_HD inline void fold_elements(Op const& op, T* x) noexcept {
  if constexpr (K > 1) {
    constexpr std::size_t half = std::bit_ceil(K) / 2;
    fold_elements<half>(op, x);
    fold_elements<K - half>(op, x + half);
    x[0] = combine(op, x[0], x[half]);
  }
}

}  // namespace rondo::inline v0::detail
