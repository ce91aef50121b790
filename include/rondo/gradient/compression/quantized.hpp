#pragma once

#include <rondo/float8.hpp>
#include <rondo/fold.hpp>
#include <rondo/gradient/compression/two_phase.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

namespace rondo::inline v0 {

/// Floats in blocks of `Block`, each with a scale, so that a large number costs its neighbours their precision and
/// nobody else. A block with a number that is not finite becomes NaN, on all ranks.
///
/// Q is std::int8_t: multiples of the largest magnitude / 127, an absolute error of at most a 254th of that. Or
/// float8_e4m3: scaled so that the largest becomes 448, a relative error of at most 2^-4, and for what is smaller than
/// 2^-15 of the largest at most 2^-19 of that.
template <class Q, std::size_t Block = 1024>
struct block_codec {
  static_assert(std::same_as<Q, std::int8_t> || std::same_as<Q, float8_e4m3>,
                "a block is quantised to std::int8_t or float8_e4m3");
  static constexpr float largest = std::same_as<Q, std::int8_t> ? 127 : 448;
  /// So that `largest` times the scale is finite.
  static constexpr float largest_scale =
      std::numeric_limits<float>::max() / largest * (1 - std::numeric_limits<float>::epsilon());

  std::size_t bytes(std::size_t n) const noexcept { return (n + Block - 1) / Block * sizeof(float) + n; }

  void encode(std::span<float const> in, std::byte* to) const noexcept {
    each_block(in, to, [](std::span<float const> block, std::byte* place) {
      float most = 0, nothing = 0;
      for (float const x : block) {
        most = std::max(most, std::abs(x));
        nothing += x * 0;  // NaN if anything is not finite
      }
      float const scale = std::min(most / largest, largest_scale) + nothing;
      std::memcpy(place, &scale, sizeof scale);
      // Nothing to tell apart in zeros, in NaN, and in what is too small to be divided by.
      float const factor = scale >= std::numeric_limits<float>::min() ? 1 / scale : 0;
      if (factor == 0)
        std::memset(place + sizeof scale, 0, block.size());
      else
        put(block, factor, place + sizeof scale);
    });
  }

  void decode(std::byte const* from, std::span<float> out) const noexcept {
    each_block(out, from, [](std::span<float> block, std::byte const* place) {
      float scale = 0;
      std::memcpy(&scale, place, sizeof scale);
      get(place + sizeof scale, scale, block);
    });
  }

 private:
  template <class T, class Byte, class F>
  static void each_block(std::span<T> all, Byte* place, F&& f) {
    for (; !all.empty(); all = all.subspan(std::min(all.size(), Block)), place += sizeof(float) + Block)
      f(all.first(std::min(all.size(), Block)), place);
  }

  /// Rounds to nearest in a way that every compiler can do for many at a time.
  static void put(std::span<float const> in, float factor, std::byte* to) noexcept {
    if constexpr (std::same_as<Q, std::int8_t>)
      for (std::size_t i = 0; i < in.size(); ++i) {
        float const x = in[i] * factor;
        to[i] = static_cast<std::byte>(static_cast<int>(x + (x < 0 ? -0.5F : 0.5F)));
      }
    else
      detail::map_range<Q, float>(to, reinterpret_cast<std::byte const*>(in.data()), in.size(),
                                  [factor](float x) noexcept { return x * factor; });
  }

  static void get(std::byte const* from, float scale, std::span<float> out) noexcept {
    if constexpr (std::same_as<Q, std::int8_t>)
      for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<float>(static_cast<std::int8_t>(from[i])) * scale;
    else
      detail::map_range<float, Q>(reinterpret_cast<std::byte*>(out.data()), from, out.size(),
                                  [scale](float x) noexcept { return x * scale; });
  }
};

/// Sends a byte for each float, and adds floats.
template <class Q>
using quantized = two_phase<block_codec<Q>>;

}  // namespace rondo::inline v0
