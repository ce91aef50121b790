#pragma once

#include <rondo/config.hpp>

#include <cstddef>
#include <string>

namespace rondo::inline v0 {

/// How ranks are connected by InfiniBand or RoCE. `rails`, `stripe`, `slots` and `slot_bytes` must be the same on every
/// rank.
struct verbs_options {
  /// The devices and ports to use, in the grammar of hca_filter; empty: the environment decides.
  std::string devices{};

  /// The entry of a port's GID table by which RoCE peers address it; -1: RONDO_IB_GID_INDEX, else NCCL_IB_GID_INDEX,
  /// else the best entry.
  int gid_index = -1;

  /// Queue pairs for each pair of ranks, dealt out to the ports in turn.
  int rails = 1;

  /// Bytes that go through one queue pair before it is the next one's turn.
  std::size_t stripe = std::size_t{128} << 10;

  /// Messages that a queue pair can have under way in each direction, 2 … 4096, and the most bytes of one. Each queue
  /// pair takes 2 * slots * slot_bytes of locked memory.
  int slots = 32;
  std::size_t slot_bytes = std::size_t{16} << 10;

  /// Marks of the packets, by which a fabric may tell them from others.
  int traffic_class = 0;
  int service_level = 0;

  /// An acknowledgement is waited for some 4 us * 2^timeout, and then `retries` times more. Never 7 retries: some
  /// devices take that for endless.
  int timeout = 14;
  int retries = 6;
};

}  // namespace rondo::inline v0
