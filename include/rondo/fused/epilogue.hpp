#pragma once

#include <rondo/element.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

namespace rondo::inline v0 {

/// What the owner of a reduced element does with it, in the same pass over memory: from the value as it was
/// accumulated, in A, it makes the element that is stored, a U. Without exceptions.
///
///  - by element: `U epilogue(std::size_t i, A value)`;
///  - by block: `epilogue(std::size_t first, std::span<A const> values, std::span<U> out)`, which fills `out`.
///
/// i and first count from the beginning of what this rank stores. It sees each of its elements once, in their order, in
/// blocks of any size, on the thread that drives the call. Nothing else happens to elements that others own.
///
/// An element epilogue with a member `independent` that is true declares that calls for different elements do not touch
/// the same memory; then several of them are computed at once. scale, cast and then() are.
template <class E, class A, class U>
concept element_epilogue = std::is_nothrow_invocable_r_v<U, E const&, std::size_t, A const&>;
template <class E, class A, class U>
concept block_epilogue = std::is_nothrow_invocable_v<E const&, std::size_t, std::span<A const>, std::span<U>>;
template <class E, class A, class U>
concept epilogue = element_epilogue<E, A, U> || block_epilogue<E, A, U>;

/// What makes the elements that a rank hands to all, as they are needed: `U producer(std::size_t i)`, or by block
/// `producer(std::size_t first, std::span<U> out)`. Otherwise as an epilogue.
template <class P, class U>
concept element_producer = std::is_nothrow_invocable_r_v<U, P const&, std::size_t>;
template <class P, class U>
concept block_producer = std::is_nothrow_invocable_v<P const&, std::size_t, std::span<U>>;
template <class P, class U>
concept producer = element_producer<P, U> || block_producer<P, U>;

namespace detail {

template <class E>
inline constexpr bool is_independent = false;
template <class E>
  requires requires { requires E::independent; }
inline constexpr bool is_independent<E> = true;

}  // namespace detail

}  // namespace rondo::inline v0
