#pragma once

#include <rondo/config.hpp>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstdint>
#include <cstring>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <sys/socket.h>

namespace rondo::inline v0 {

/// An IPv4 or IPv6 address, without port and zone.
class ip_address {
 public:
  /// Reads the numeric form; no name is ever looked up.
  static std::optional<ip_address> parse(std::string const& text) {
    for (int const family : {AF_INET, AF_INET6})
      if (ip_address a(family); inet_pton(family, text.c_str(), a.bytes_.data()) == 1) return a;
    return std::nullopt;
  }

  /// The address within a socket address; nothing for other families than IPv4 and IPv6.
  static std::optional<ip_address> from(sockaddr const* socket_address) {
    if (socket_address == nullptr) return std::nullopt;
    ip_address a(socket_address->sa_family);
    switch (a.family_) {
      case AF_INET: std::memcpy(a.bytes_.data(), &as<sockaddr_in>(socket_address)->sin_addr, sizeof(in_addr)); return a;
      case AF_INET6:
        std::memcpy(a.bytes_.data(), &as<sockaddr_in6>(socket_address)->sin6_addr, sizeof(in6_addr));
        return a;
      default: return std::nullopt;
    }
  }

  /// Fills in a socket address; returns its length.
  socklen_t fill(sockaddr_storage& socket_address, std::uint16_t port) const noexcept {
    socket_address = {};
    socket_address.ss_family = static_cast<sa_family_t>(family_);
    if (family_ == AF_INET) {
      auto& in = reinterpret_cast<sockaddr_in&>(socket_address);
      in.sin_port = htons(port);
      std::memcpy(&in.sin_addr, bytes_.data(), sizeof in.sin_addr);
      return sizeof in;
    }
    auto& in6 = reinterpret_cast<sockaddr_in6&>(socket_address);
    in6.sin6_port = htons(port);
    std::memcpy(&in6.sin6_addr, bytes_.data(), sizeof in6.sin6_addr);
    return sizeof in6;
  }

  int family() const noexcept { return family_; }
  bool loopback() const noexcept {
    if (family_ == AF_INET) return bytes_[0] == 127;
    return std::all_of(bytes_.begin(), bytes_.end() - 1, [](auto b) { return b == 0; }) && bytes_.back() == 1;
  }
  bool link_local() const noexcept { return family_ == AF_INET6 && bytes_[0] == 0xfe && (bytes_[1] & 0xc0) == 0x80; }

  /// How many bits are one before the first zero: the prefix length, if this is a netmask.
  int leading_ones() const noexcept {
    int n = 0;
    while (n < width() && bit(n)) ++n;
    return n;
  }

  /// True if both are of one family and agree in their first `prefix` bits.
  bool shares(int prefix, ip_address const& other) const noexcept {
    if (family_ != other.family_) return false;
    for (int i = 0; i < std::min(prefix, width()); ++i)
      if (bit(i) != other.bit(i)) return false;
    return true;
  }

  std::string to_string() const {
    char text[INET6_ADDRSTRLEN] = {};
    inet_ntop(family_, bytes_.data(), text, sizeof text);
    return text;
  }

  friend bool operator==(ip_address const&, ip_address const&) = default;

 private:
  explicit ip_address(int family) noexcept : family_(family) {}

  template <class T>
  static T const* as(sockaddr const* a) noexcept {
    return reinterpret_cast<T const*>(a);
  }

  int width() const noexcept { return family_ == AF_INET ? 32 : 128; }
  bool bit(int i) const noexcept { return (bytes_[static_cast<std::size_t>(i / 8)] >> (7 - i % 8) & 1) != 0; }

  int family_;
  std::array<std::uint8_t, 16> bytes_{};  // in network order; IPv4 fills the first four
};

}  // namespace rondo::inline v0
