#pragma once

#include <rondo/transport.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rondo::inline v0 {

/// A transport whose ranks also load and store memory that they share.
///
///  - board(owner): the memory of one rank, of the same size for all, zero at first; empty if this transport has none
///    after all (it was chosen at run time).
///  - flag(owner, writer, i): counter `i`, 0 … flags_per_pair - 1, in the memory of `owner`, that only `writer` stores
///  to. A
///    release store publishes what was written to boards before, to whoever loads it with acquire.
///  - notify(peer): wakes a peer that sleeps in wait(); to be called after a store to one of its flags.
template <class X>
concept addressable = transport<X> && requires(X x, X const cx, rank_t q, int i) {
  { cx.board(q) } -> std::same_as<std::span<std::byte>>;
  { x.flag(q, q, i) } -> std::same_as<std::atomic<std::uint64_t>&>;
  { x.notify(q) } -> std::same_as<void>;
};

/// Counters that each ordered pair of ranks of an addressable transport has.
inline constexpr int flags_per_pair = 3;

}  // namespace rondo::inline v0
