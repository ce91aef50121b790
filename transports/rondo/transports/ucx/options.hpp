#pragma once

#include <rondo/config.hpp>

#include <cstddef>

namespace rondo::inline v0 {

/// How ranks are connected by UCX. Must be the same on every rank. For each peer a rank keeps
/// 2 · `window` · `slot_bytes` of memory, which a fabric may pin.
struct ucx_options {
  /// Bytes that travel as one message: a multiple of 64, 64 … 16 Mi.
  std::size_t slot_bytes = std::size_t{64} << 10;

  /// Messages that may be under way to a peer that does not read: 2 … 1024.
  int window = 16;
};

}  // namespace rondo::inline v0
