#pragma once

#include <rondo/config.hpp>

#include <cstddef>
#include <string>

namespace rondo::inline v0 {

/// How ranks are connected by TCP. `streams` and `stripe` must be the same on every rank.
struct tcp_options {
  /// The interfaces to use, in the grammar of interface_filter; empty: the environment decides.
  std::string interfaces{};

  /// One numeric IPv4 or IPv6 address of this machine to listen on and to dial from; overrides `interfaces`.
  std::string bind{};

  /// Connections for each pair of ranks. More than one helps where a single connection cannot fill the link.
  int streams = 1;

  /// Bytes that go through one connection before it is the next one's turn.
  std::size_t stripe = std::size_t{128} << 10;

  /// Bytes of the kernel's buffers for each connection; 0: the kernel tunes them.
  int send_buffer = 0;
  int receive_buffer = 0;
};

}  // namespace rondo::inline v0
