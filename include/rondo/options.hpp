#pragma once

#include <rondo/algorithm.hpp>
#include <rondo/element.hpp>

#include <chrono>
#include <concepts>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace rondo::inline v0 {

using namespace std::chrono_literals;

class policy;

struct communicator_options {
  std::chrono::milliseconds deadline = 5min;  ///< of every call that does not bring its own
  bool ordered = false;                       ///< for every call, see call_options

  /// Measured choices of algorithms, the same on all ranks (rondo/policy.hpp). Null: those in the file that the
  /// environment variable RONDO_POLICY names, read by the constructor, else none.
  std::shared_ptr<rondo::policy const> policy{};
};

struct call_options {
  std::chrono::milliseconds deadline{0};  ///< zero: the communicator's

  /// One summation tree for all elements, a function of the number of ranks alone: the same bits whatever the
  /// algorithm, the size of the buffer, the place in it and the transport.
  bool ordered = false;

  rondo::algorithm algorithm = rondo::algorithm::automatic;
};

/// Leaves the choice of the algorithm to the call's options, and these to the policy, or `select`.
struct automatic {};

namespace detail {

template <class R>
using span_of = decltype(std::span(std::declval<std::remove_reference_t<R>&>()));

}  // namespace detail

/// A contiguous range of elements.
template <class R>
concept buffer = requires {
  typename detail::span_of<R>;
}
&&element<typename detail::span_of<R>::value_type>;

/// Its elements.
template <buffer R>
using element_of = typename detail::span_of<R>::value_type;

/// A contiguous range of elements that may be written.
template <class R>
concept writable_buffer = buffer<R> && !std::is_const_v<typename detail::span_of<R>::element_type>;

/// A writable range of the elements of another range.
template <class R, class Of>
concept writable_buffer_of = writable_buffer<R> && std::same_as<element_of<R>, element_of<Of>>;

}  // namespace rondo::inline v0
