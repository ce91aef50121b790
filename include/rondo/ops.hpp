#pragma once

#include <rondo/detail/branch_free.hpp>
#include <rondo/reduce_op.hpp>

#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

namespace rondo::inline v0 {

namespace detail {

/// Where sums and products of T wrap without undefined behaviour: unsigned, and not narrower than unsigned, because
/// the product of two std::uint16_t would be a signed int.
template <class T>
using wrapping = std::conditional_t<(sizeof(T) > sizeof(unsigned)), std::uint64_t, unsigned>;

template <class T>
concept wraps = std::integral<T> && sizeof(T) <= sizeof(std::uint64_t);

template <class T>
concept number = std::is_arithmetic_v<T> || is_small_float<T>;

/// The lesser, or greater, of two floats in the total order of IEEE 754-2019 section 5.10, except that any NaN gives
/// the one quiet NaN. In integers, because neither -ffast-math nor flush-to-zero may change the answer.
template <bool Greater, class F>
RONDO_HD constexpr F extreme(F x, F y) noexcept {
  using bits = std::conditional_t<sizeof(F) == 4, std::int32_t, std::int64_t>;
  constexpr bits magnitude = std::numeric_limits<bits>::max();
  constexpr bits infinity = std::bit_cast<bits>(std::numeric_limits<F>::infinity());
  constexpr bits nan = std::bit_cast<bits>(std::numeric_limits<F>::quiet_NaN());
  bits const a = std::bit_cast<bits>(x), b = std::bit_cast<bits>(y);
  bits const a_key = a ^ (negative(a) & magnitude), b_key = b ^ (negative(b) & magnitude);
  bits const chosen = select(Greater ? less(b_key, a_key) : less(a_key, b_key), a, b);
  bits const unordered = negative((infinity - (a & magnitude)) | (infinity - (b & magnitude)));
  return std::bit_cast<F>(select(unordered, nan, chosen));
}

template <bool Greater>
struct extreme_op {
  static constexpr bool commutative = true;
  static constexpr std::string_view name = Greater ? "max" : "min";

  template <class T>
    requires requires(T a, T b) { a < b; }
  RONDO_HD constexpr T operator()(T const& a, T const& b) const noexcept {
    if constexpr (is_small_float<T>)
      return T(extreme<Greater>(static_cast<float>(a), static_cast<float>(b)));
    else if constexpr (std::same_as<T, float> || std::same_as<T, double>)
      return extreme<Greater>(a, b);
    else
      return (Greater ? b < a : a < b) ? a : b;
  }
};

}  // namespace detail

/// a + b. Integers wrap. A user type's operator+ must commute.
struct sum_op {
  static constexpr bool commutative = true;
  static constexpr std::string_view name = "sum";

  template <class T>
    requires requires(T a, T b) { a + b; }
  RONDO_HD constexpr T operator()(T const& a, T const& b) const noexcept {
    if constexpr (detail::wraps<T>)
      return static_cast<T>(static_cast<detail::wrapping<T>>(a) + static_cast<detail::wrapping<T>>(b));
    else
      return static_cast<T>(a + b);
  }
};

/// a * b. Integers wrap. Not for user types, whose products need not commute: a lambda keeps the order of ranks.
struct prod_op {
  static constexpr bool commutative = true;
  static constexpr std::string_view name = "prod";

  template <detail::number T>
  RONDO_HD constexpr T operator()(T const& a, T const& b) const noexcept {
    if constexpr (detail::wraps<T>)
      return static_cast<T>(static_cast<detail::wrapping<T>>(a) * static_cast<detail::wrapping<T>>(b));
    else
      return static_cast<T>(a * b);
  }
};

/// The mean over all ranks: summed in mean_accumulator_t, divided once, rounded to T.
///
/// float16 and the 8-bit floats cannot overflow on the way; bfloat16, float and double sum in their own range. Integers
/// give the exact mean, truncated toward zero.
struct avg_op {
  static constexpr bool commutative = true;
  static constexpr std::string_view name = "avg";

  template <class T>
  using wide_t = mean_accumulator_t<T>;

  template <class T>
  requires std::invocable<sum_op, T const&, T const&> RONDO_HD constexpr T operator()(T const& a,
                                                                                      T const& b) const noexcept {
    return sum_op{}(a, b);
  }

  template <class T>
  RONDO_HD static constexpr T finish(wide_t<T> const& total, int ranks) noexcept {
    if constexpr (detail::number<T>)
      return static_cast<T>(total / static_cast<wide_t<T>>(ranks));
    else
      return static_cast<T>(total / ranks);
  }
};

/// The sum of factor * contribution. The factor may differ between ranks.
template <detail::number F>
struct premul_sum_op {
  static constexpr bool commutative = true;
  static constexpr std::string_view name = "premul_sum";

  template <class T>
  requires std::invocable<sum_op, T const&, T const&> RONDO_HD constexpr T operator()(T const& a,
                                                                                      T const& b) const noexcept {
    return sum_op{}(a, b);
  }

  /// factor * value, rounded once: the factor is converted to accumulator_t<T> first.
  template <class T>
  RONDO_HD constexpr T prepare(T const& value) const noexcept {
    static_assert(!std::integral<T> || std::integral<F>,
                  "a fraction of an integer is none: give premul_sum an integer factor, or reduce floats");
    if constexpr (std::integral<T>)
      return prod_op{}(value, static_cast<T>(factor));
    else if constexpr (detail::number<T>)
      return static_cast<T>(accumulator_t<T>(value) * static_cast<accumulator_t<T>>(factor));
    else
      return static_cast<T>(value * factor);
  }

  F factor;
};

/// Integers only.
struct bit_and_op {
  static constexpr bool commutative = true, bitwise = true;
  static constexpr std::string_view name = "bit_and";

  template <std::integral T>
  RONDO_HD constexpr T operator()(T const& a, T const& b) const noexcept {
    return static_cast<T>(a & b);
  }
};

/// Integers only.
struct bit_or_op {
  static constexpr bool commutative = true, bitwise = true;
  static constexpr std::string_view name = "bit_or";

  template <std::integral T>
  RONDO_HD constexpr T operator()(T const& a, T const& b) const noexcept {
    return static_cast<T>(a | b);
  }
};

/// Integers only.
struct bit_xor_op {
  static constexpr bool commutative = true, bitwise = true;
  static constexpr std::string_view name = "bit_xor";

  template <std::integral T>
  RONDO_HD constexpr T operator()(T const& a, T const& b) const noexcept {
    return static_cast<T>(a ^ b);
  }
};

/// 1 where both are nonzero, else 0.
struct logical_and_op {
  static constexpr bool commutative = true;
  static constexpr std::string_view name = "logical_and";

  template <detail::number T>
  RONDO_HD constexpr T operator()(T const& a, T const& b) const noexcept {
    return static_cast<T>(a != 0 && b != 0);
  }
};

/// 1 where one is nonzero, or both, else 0.
struct logical_or_op {
  static constexpr bool commutative = true;
  static constexpr std::string_view name = "logical_or";

  template <detail::number T>
  RONDO_HD constexpr T operator()(T const& a, T const& b) const noexcept {
    return static_cast<T>(a != 0 || b != 0);
  }
};

/// 1 where exactly one is nonzero, else 0.
struct logical_xor_op {
  static constexpr bool commutative = true;
  static constexpr std::string_view name = "logical_xor";

  template <detail::number T>
  RONDO_HD constexpr T operator()(T const& a, T const& b) const noexcept {
    return static_cast<T>((a != 0) != (b != 0));
  }
};

/// min and max: NaN wins on every rank, whatever its position, as the one quiet NaN; -0.0 < +0.0. On user types they
/// need operator<.
using min_op = detail::extreme_op<false>;
using max_op = detail::extreme_op<true>;

inline constexpr sum_op sum{};
inline constexpr prod_op prod{};
inline constexpr min_op min{};
inline constexpr max_op max{};
inline constexpr avg_op avg{};
inline constexpr bit_and_op bit_and{};
inline constexpr bit_or_op bit_or{};
inline constexpr bit_xor_op bit_xor{};
inline constexpr logical_and_op logical_and{};
inline constexpr logical_or_op logical_or{};
inline constexpr logical_xor_op logical_xor{};

template <detail::number F>
constexpr premul_sum_op<F> premul_sum(F factor) noexcept {
  return {factor};
}

}  // namespace rondo::inline v0
