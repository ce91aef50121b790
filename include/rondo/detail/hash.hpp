#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace rondo::inline v0::detail {

/// A 64-bit hash of whatever is added, in its order. A word is mixed in by a multiplication to 128 bits whose halves
/// are folded, as in wyhash (Wang Yi). Not against attackers.
class hasher {
 public:
  hasher& add(std::uint64_t word) noexcept {
    __extension__ using uint128 = unsigned __int128;
    uint128 const product = uint128{word ^ 0xa0761d6478bd642fU} * (state_ ^ 0xe7037ed1a0b428dbU);
    state_ = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64) ^ std::rotl(word, 31);
    return *this;
  }

  hasher& add(std::span<std::byte const> bytes) noexcept {
    add(std::uint64_t{bytes.size()});
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) add(word(bytes.first(8)));
    return add(word(bytes));
  }

  hasher& add(std::string_view text) noexcept { return add(std::as_bytes(std::span(text))); }

  std::uint64_t value() const noexcept { return state_; }

 private:
  /// At most 8 bytes.
  static std::uint64_t word(std::span<std::byte const> bytes) noexcept {
    std::uint64_t w = 0;
    if (!bytes.empty()) std::memcpy(&w, bytes.data(), bytes.size());
    return w;
  }

  std::uint64_t state_ = 0x8ebc6af09c88c6e3U;
};

}  // namespace rondo::inline v0::detail
