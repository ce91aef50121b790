#pragma once

#include <rondo/bfloat16.hpp>
#include <rondo/detail/short_name.hpp>
#include <rondo/float16.hpp>
#include <rondo/float8.hpp>

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace rondo::inline v0 {

/// What buffers are made of: values that may be copied as bytes.
template <class T>
concept element = std::is_object_v<T> && std::is_trivially_copyable_v<T> && std::same_as<T, std::remove_cv_t<T>>;

namespace detail {

template <class T>
inline constexpr bool is_small_float = false;
template <class Bits, int Exponent, int Mantissa, bool Infinite>
inline constexpr bool is_small_float<small_float<Bits, Exponent, Mantissa, Infinite>> = true;

__extension__ using int128 = __int128;
__extension__ using uint128 = unsigned __int128;

template <class T>
struct mean_accumulator {
  using type = std::conditional_t<is_small_float<T>, float, T>;
};

template <std::integral T>
struct mean_accumulator<T> {
  using whole = std::conditional_t<(sizeof(T) < 8), std::int64_t, int128>;
  using natural = std::conditional_t<(sizeof(T) < 8), std::uint64_t, uint128>;
  using type = std::conditional_t<std::is_signed_v<T>, whole, natural>;
};

template <class T>
constexpr short_name name_of() {
  if constexpr (std::same_as<T, bool>) return short_name("bool");
  if constexpr (std::same_as<T, float>) return short_name("float32");
  if constexpr (std::same_as<T, double>) return short_name("float64");
  if constexpr (std::same_as<T, float16>) return short_name("float16");
  if constexpr (std::same_as<T, bfloat16>) return short_name("bfloat16");
  if constexpr (std::same_as<T, float8_e4m3>) return short_name("float8_e4m3");
  if constexpr (std::same_as<T, float8_e5m2>) return short_name("float8_e5m2");
  if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    constexpr std::string_view names[][2] = {
        {"uint8", "int8"}, {"uint16", "int16"}, {"uint32", "int32"}, {"uint64", "int64"}};
    return short_name(names[sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3][std::is_signed_v<T>]);
  }
  return short_name::of(spelled<T>());
}

template <class T>
inline constexpr short_name type_name = name_of<T>();

}  // namespace detail

/// The type that an operation on two T computes in: float for 8- and 16-bit floats, else T itself.
template <class T>
using accumulator_t = std::conditional_t<detail::is_small_float<T>, float, T>;

/// The type that a mean of T is summed in: float for 8- and 16-bit floats; an integer that up to 2^31 ranks cannot
/// overflow for integers (64 bits for those of up to 32, 128 for those of 64); else T itself.
template <class T>
using mean_accumulator_t = typename detail::mean_accumulator<T>::type;

/// A name of at most 15 characters, the same for the same type on every rank: "float32", "bfloat16", "int64", … For a
/// user's type the compiler's spelling, cut and marked with a hash where it is longer: ranks must be built alike.
template <class T>
constexpr std::string_view type_name() noexcept {
  return detail::type_name<T>.view();
}

}  // namespace rondo::inline v0
