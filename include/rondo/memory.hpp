#pragma once

#include <rondo/registered_memory.hpp>
#include <rondo/transport.hpp>

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace rondo::inline v0 {

/// A message of a few bytes in shared memory. Its number, text and all travel in one cache line, or in two that are
/// fetched together.
struct letter {
  alignas(128) std::atomic<std::uint64_t> number;  ///< only grows; stored last, with release, so that whoever sees it
                                                   ///< may read on
  std::uint64_t digest;                            ///< of the fingerprint of the call
  std::array<std::byte, 112> text;
};

/// What one rank has written for another one in memory that both share. Nobody else stores to it. Zero bytes are an
/// empty mailbox.
struct mailbox {
  /// Counters that only grow. A release store publishes what was written to boards before, to whoever loads it with
  /// acquire.
  alignas(128) std::array<std::atomic<std::uint64_t>, 3> flags;

  std::array<letter, 2> letters;  ///< that take turns
};

/// A transport whose ranks also load and store memory that they share.
///
///  - board(owner): the memory of one rank, of the same size for all, zero at first; empty if this transport has none
///    after all (it was chosen at run time).
///  - mail(owner, writer): the mailbox in the memory of `owner` that `writer` writes.
///  - notify(peer): wakes a peer that sleeps in wait(); to be called after a store to one of its mailboxes.
///  - registered(): memory for buffers that every rank can address; null if board() is empty.
template <class X>
concept addressable = transport<X> && requires(X x, X const cx, rank_t q) {
  { cx.board(q) } -> std::same_as<std::span<std::byte>>;
  { cx.mail(q, q) } -> std::same_as<mailbox&>;
  { x.notify(q) } -> std::same_as<void>;
  { cx.registered() } -> std::same_as<std::shared_ptr<registered_memory>>;
};

}  // namespace rondo::inline v0
