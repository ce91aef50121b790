#pragma once

#include <rondo/types.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace rondo::inline v0 {

/// Names cut to what fits a fingerprint.
using short_name = std::array<char, 16>;

/// The first 15 characters of `text`.
constexpr short_name to_short_name(std::string_view text) noexcept {
  short_name out{};
  for (std::size_t i = 0; i < text.size() && i + 1 < out.size(); ++i) out[i] = text[i];
  return out;
}

/// What a rank believes that it is calling. Travels in front of the first bytes that two ranks exchange in a
/// collective, so that a disagreement becomes an error that names both calls, without a message of its own.
struct fingerprint {
  std::uint64_t sequence = 0;  ///< number of the collective on its communicator, from 1; 0 for send and receive
  std::uint64_t count = 0;     ///< elements
  std::uint64_t shape = 0;     ///< hash of whatever else must agree: block sizes, scale factors
  std::int32_t root = nobody;
  std::uint16_t collective = 0;  ///< value of rondo::collective
  std::uint8_t algorithm = 0;    ///< value of rondo::algorithm
  std::uint8_t ordered = 0;
  short_name type{};
  short_name op{};

  friend bool operator==(fingerprint const&, fingerprint const&) = default;
};
static_assert(sizeof(fingerprint) == 64 && std::has_unique_object_representations_v<fingerprint>);

/// 64 bits in the place of a fingerprint: two that differ have the same digest by a chance of 2^-64 only.
inline std::uint64_t digest(fingerprint const& mark) noexcept {
  auto const words = std::bit_cast<std::array<std::uint64_t, 8>>(mark);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    // The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), with another start for every word.
    std::uint64_t z = words[i] + (i + 1) * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    sum += z ^ (z >> 31);
  }
  return sum;
}

}  // namespace rondo::inline v0
