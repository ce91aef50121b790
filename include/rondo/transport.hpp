#pragma once

#include <rondo/types.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

namespace rondo::inline v0 {

/// A way to move bytes between ranks: one reliable FIFO byte stream for each ordered pair of ranks.
///
/// Nothing blocks except wait(). Streams carry no message boundaries: both ends know from the schedule what comes.
/// One thread at a time may use a transport. A stream whose peer has gone throws peer_lost naming the peer.
///
///  - write(peer, bytes, more): accepts a prefix of `bytes`, possibly nothing, and returns its length; the accepted
///    bytes may be overwritten at once. `more` says that the caller will write again soon, so that a small write may
///    wait for the next one and travel with it.
///  - readable(peer, need): the bytes that have arrived and were not consumed, contiguous; empty unless at least `need`
///    (1 … 65536) have arrived. Valid until the next call for this peer. Has no alignment.
///  - consume(peer, n): drops the first n of them.
///  - read(peer, bytes): moves arrived bytes into `bytes` and consumes them; returns how many. May skip the staging
///  copy.
///  - wait(patience): sleeps until a stream of this rank may have moved, or patience has run out; may return early.
// clang-format off (version 14 breaks the line before noexcept)
template <class X>
concept transport = requires(X x, X const cx, rank_t peer, std::span<std::byte const> out, std::span<std::byte> in,
                             std::size_t n, bool more, std::chrono::nanoseconds patience) {
  { cx.rank() }
  noexcept->std::same_as<rank_t>;
  { cx.size() }
  noexcept->std::same_as<int>;
  { x.write(peer, out, more) } -> std::same_as<std::size_t>;
  { x.readable(peer, n) } -> std::same_as<std::span<std::byte const>>;
  { x.consume(peer, n) } -> std::same_as<void>;
  { x.read(peer, in) } -> std::same_as<std::size_t>;
  { x.wait(patience) } -> std::same_as<void>;
};
// clang-format on

/// The name of a transport, or an empty text if it has none.
template <transport X>
std::string_view transport_name(X const& x) noexcept {
  if constexpr (requires { std::string_view(x.name()); })
    return x.name();
  else if constexpr (requires { std::string_view(X::name); })
    return X::name;
  return {};
}

/// Whether the bytes of write() and read() may lie in memory of a device, which the processor cannot address:
/// x.takes_device_memory(), if it has that member, else no. What readable() shows is always memory of the host.
template <transport X>
bool takes_device_memory(X const& x) noexcept {
  if constexpr (requires {
                  { x.takes_device_memory() } -> std::same_as<bool>;
                })
    return x.takes_device_memory();
  return false;
}

/// Bytes of one write or read by which a large message moves best over the transport: its piece_bytes(), if it has that
/// member, else as much as stays in the nearest caches.
template <transport X>
std::size_t piece_bytes(X const& x) noexcept {
  if constexpr (requires {
                  { x.piece_bytes() } -> std::same_as<std::size_t>;
                })
    return x.piece_bytes();
  return std::size_t{32} << 10;
}

}  // namespace rondo::inline v0
