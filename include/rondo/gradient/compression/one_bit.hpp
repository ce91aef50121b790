#pragma once

#include <rondo/gradient/compression/two_phase.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>

namespace rondo::inline v0 {

/// The sign of each float, and the mean magnitude of each block of `Block`: of all vectors s * sign(u) the nearest to u
/// (Karimireddy et al. 2019, arXiv 1901.09847: |u - C(u)|^2 = |u|^2 - |u|_1^2 / n per block of n). Needs error
/// feedback. A block with a number that is not finite becomes NaN, on all ranks.
template <std::size_t Block = 1024>
struct sign_codec {
  static_assert(Block % 8 == 0, "signs are packed in bytes: let a block be a multiple of 8");

  std::size_t bytes(std::size_t n) const noexcept { return (n + Block - 1) / Block * stride; }

  void encode(std::span<float const> in, std::byte* to) const noexcept {
    for (; !in.empty(); in = in.subspan(std::min(in.size(), Block)), to += stride) {
      auto const block = in.first(std::min(in.size(), Block));
      float sum = 0;
      std::memset(to, 0, stride);
      for (std::size_t i = 0; i < block.size(); ++i) {
        sum += std::abs(block[i]) + block[i] * 0;
        to[sizeof sum + i / 8] |= static_cast<std::byte>((block[i] < 0 ? 1 : 0) << i % 8);
      }
      float const scale = sum / static_cast<float>(block.size());
      std::memcpy(to, &scale, sizeof scale);
    }
  }

  void decode(std::byte const* from, std::span<float> out) const noexcept {
    for (; !out.empty(); out = out.subspan(std::min(out.size(), Block)), from += stride) {
      auto const block = out.first(std::min(out.size(), Block));
      float scale = 0;
      std::memcpy(&scale, from, sizeof scale);
      for (std::size_t i = 0; i < block.size(); ++i) {
        bool const negative = (from[sizeof scale + i / 8] >> i % 8 & std::byte{1}) != std::byte{0};
        block[i] = negative ? -scale : scale;
      }
    }
  }

 private:
  static constexpr std::size_t stride = sizeof(float) + Block / 8;
};

/// Sends a bit for each float, and adds floats.
using one_bit = two_phase<sign_codec<>>;

}  // namespace rondo::inline v0
