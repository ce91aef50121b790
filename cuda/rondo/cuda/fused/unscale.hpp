#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/session.hpp>
#include <rondo/fused/finite.hpp>

#include <cstddef>
#include <cstdint>

namespace rondo::inline v0::device {

/// An epilogue: takes back a loss scale, and tells everybody if a reduced gradient is infinite or NaN.
///
/// `found[q]` is a number of rank q that all ranks address, zeroed by its rank before the call; after the call it is 1
/// on all ranks or 0 on all ranks. The factor is read when the kernel runs, so that a graph may be replayed with
/// another one.
template <int Ranks>
struct unscale {
  float const* factor;  ///< 1 / loss scale, in device memory
  std::uint32_t* found[Ranks];

  template <class Context>
  RONDO_HD float operator()(Context& context, std::size_t, float value) const noexcept {
    if (!is_finite(value))
      for (int q = 0; q < Ranks; ++q) context.store_relaxed(*found[q], std::uint32_t{1});
    return value * *factor;
  }
};

}  // namespace rondo::inline v0::device
