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

/// 64 bits in the place of a fingerprint: whoever calls something else has another digest, but for a chance of 2^-64.
/// Pairs of words are multiplied to 128 bits and folded, as in wyhash (Wang Yi).
inline std::uint64_t digest(fingerprint const& mark) noexcept {
  __extension__ using uint128 = unsigned __int128;
  constexpr std::uint64_t key[] = {0xa0761d6478bd642fU, 0xe7037ed1a0b428dbU, 0x8ebc6af09c88c6e3U, 0x589965cc75374cc3U};
  auto const words = std::bit_cast<std::array<std::uint64_t, 8>>(mark);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    uint128 const product = uint128{words[i] ^ key[i]} * (words[i + 4] ^ key[3 - i]);
    sum = std::rotl(sum, 17) ^ static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  }
  return sum;
}

}  // namespace rondo::inline v0
