#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rondo::inline v0::detail {

/// 32 bytes, as SHA-256 yields them.
using digest = std::array<unsigned char, 32>;

inline std::string_view view(digest const& d) noexcept { return {reinterpret_cast<char const*>(d.data()), d.size()}; }

/// SHA-256 (FIPS 180-4) of bytes that arrive piece by piece. Written here because the headers depend on nothing but the
/// standard library; it guards handshakes of a few hundred bytes, so it is short rather than fast.
class sha256 {
 public:
  sha256& update(std::string_view bytes) noexcept {
    for (char const byte : bytes) append(static_cast<unsigned char>(byte));
    return *this;
  }

  /// The digest of everything so far. Ends the stream: the object must not be used again.
  digest finish() noexcept {
    std::uint64_t const bits = 8 * length_;
    append(0x80);
    while (length_ % 64 != 56) append(0);
    for (int shift = 56; shift >= 0; shift -= 8) append(static_cast<unsigned char>(bits >> shift));
    digest result;
    for (std::size_t i = 0; i < result.size(); ++i)
      result[i] = static_cast<unsigned char>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return result;
  }

 private:
  void append(unsigned char byte) noexcept {
    block_[length_++ % 64] = byte;
    if (length_ % 64 == 0) compress();
  }

  void compress() noexcept {
    std::array<std::uint32_t, 64> w;
    for (std::size_t i = 0; i < 16; ++i)
      w[i] = std::uint32_t{block_[4 * i]} << 24 | std::uint32_t{block_[4 * i + 1]} << 16 |
             std::uint32_t{block_[4 * i + 2]} << 8 | block_[4 * i + 3];
    for (std::size_t i = 16; i < 64; ++i) {
      auto const s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
      auto const s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i < 64; ++i) {
      auto const t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i];
      auto const t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    std::array const round{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state_[i] += round[i];
  }

  static constexpr std::array<std::uint32_t, 64> k{
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
      0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
      0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
      0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
      0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
      0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
      0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> block_{};
  std::uint64_t length_ = 0;
};

/// HMAC-SHA-256 (RFC 2104) of `message` under `key`.
inline digest hmac_sha256(std::string_view key, std::string_view message) noexcept {
  digest folded;
  if (key.size() > 64) {
    folded = sha256{}.update(key).finish();
    key = view(folded);
  }
  std::array<char, 64> inner, outer;
  for (std::size_t i = 0; i < 64; ++i) {
    char const byte = i < key.size() ? key[i] : '\0';
    inner[i] = static_cast<char>(byte ^ 0x36);
    outer[i] = static_cast<char>(byte ^ 0x5c);
  }
  auto const hash = sha256{}.update({inner.data(), 64}).update(message).finish();
  return sha256{}.update({outer.data(), 64}).update(view(hash)).finish();
}

/// Compares in a time that does not depend on the bytes, so that a proof cannot be guessed byte by byte.
inline bool same_secret(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace rondo::inline v0::detail
