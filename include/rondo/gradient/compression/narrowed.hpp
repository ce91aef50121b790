#pragma once

#include <rondo/element.hpp>
#include <rondo/fold.hpp>
#include <rondo/gradient/compression/two_phase.hpp>

#include <cstddef>
#include <span>

namespace rondo::inline v0 {

/// Floats as float16 or bfloat16, rounded to nearest even: a relative error of at most 2^-11, respectively 2^-8, above
/// the least normal number (float16: 6.1e-5, with an absolute error of at most 3e-8 below). What is above 65504 becomes
/// an infinity as float16, on all ranks.
template <class T>
struct narrow_codec {
  static_assert(detail::is_small_float<T>, "a codec narrows to float16, bfloat16 or an 8-bit float");

  std::size_t bytes(std::size_t n) const noexcept { return n * sizeof(T); }
  void encode(std::span<float const> in, std::byte* to) const noexcept {
    detail::convert_range<T, float>(to, reinterpret_cast<std::byte const*>(in.data()), in.size());
  }
  void decode(std::byte const* from, std::span<float> out) const noexcept {
    detail::convert_range<float, T>(reinterpret_cast<std::byte*>(out.data()), from, out.size());
  }
};

/// Sends float16 or bfloat16 and adds floats: half of the bytes.
template <class T>
using narrowed = two_phase<narrow_codec<T>>;

}  // namespace rondo::inline v0
