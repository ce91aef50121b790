#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace rondo::inline v0 {

namespace detail {

template <std::size_t, class T>
using repeated = T;

template <class Update, class F, std::size_t... K>
constexpr bool steps(std::index_sequence<K...>) noexcept {
  return std::is_nothrow_invocable_v<Update const&, F const&, F&, repeated<K, F&>...>;
}

template <class Update>
inline constexpr bool takes_lanes = false;
template <class Update>
  requires requires { requires Update::in_lanes; }
inline constexpr bool takes_lanes<Update> = true;

}  // namespace detail

/// A rule that turns a gradient into a new weight, element by element, so that every element may be updated alone by
/// the rank that owns it.
///
///  - `O::moments`: how many numbers it remembers for each weight, all floats and 0 before the first step.
///  - `o.at(t)`: what it does in step t = 1, 2, …: a function object update(gradient, weight&, moment&...) without
///    exceptions. All are floats: the gradient reduced over all ranks, the weight in full precision.
///
/// An update with `in_lanes` set to true is also called with vectors of floats in the place of floats, which is how it
/// is computed fastest; it must use + - * / and detail::to_square_root only. On a device F may also be a class with
/// these operators, which keeps a * b + c from becoming one instruction that would round once instead of twice.
template <class O>
concept optimizer = std::copy_constructible<O> && requires(O const& o, std::uint64_t t) {
  {std::integral_constant<std::size_t, O::moments>{}};
  requires detail::steps<decltype(o.at(t)), float>(std::make_index_sequence<O::moments>{});
};

}  // namespace rondo::inline v0
