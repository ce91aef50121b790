#pragma once

#include <rondo/config.hpp>

#include <arpa/inet.h>
#include <cstdint>

namespace rondo::inline v0::detail {

/// The 32 bits that travel with a message: what it is, and how many slots of the other direction are free again.
struct verbs_immediate {
  enum class kind : std::uint32_t { data, credit, farewell };

  static constexpr std::uint32_t most_credits = 0xffff;

  kind what = kind::data;
  std::uint32_t credits = 0;  ///< at most most_credits

  /// In network byte order, as the device takes and gives it.
  std::uint32_t encode() const noexcept { return htonl(static_cast<std::uint32_t>(what) << 16 | credits); }
  static verbs_immediate decode(std::uint32_t bits) noexcept {
    auto const host = ntohl(bits);
    return {static_cast<kind>(host >> 16), host & most_credits};
  }
};

}  // namespace rondo::inline v0::detail
