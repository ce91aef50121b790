#pragma once

#include <rondo/config.hpp>

#include <cstddef>

namespace rondo::inline v0 {

/// An epilogue: the reduced value times a factor, for a mean over a number of samples or to take back a loss scale.
template <class F>
struct scale {
  static constexpr bool independent = true;

  F factor;

  template <class A>
  RONDO_HD constexpr A operator()(std::size_t, A const& value) const noexcept {
    return static_cast<A>(value * factor);
  }
};

template <class F>
scale(F) -> scale<F>;

}  // namespace rondo::inline v0
