#pragma once

#include <rondo/config.hpp>
#include <rondo/element.hpp>

#include <cstddef>

namespace rondo::inline v0 {

/// An epilogue: the reduced value as U, rounded once.
template <element U>
struct cast_to {
  static constexpr bool independent = true;

  template <class A>
  RONDO_HD constexpr U operator()(std::size_t, A const& value) const noexcept {
    return static_cast<U>(value);
  }
};

template <element U>
inline constexpr cast_to<U> cast{};

}  // namespace rondo::inline v0
