#pragma once

#include <rondo/config.hpp>

#include <cstddef>
#include <cstdint>

namespace rondo::inline v0 {

/// What has happened on all queue pairs of one rank so far.
struct verbs_statistics {
  std::uint64_t work_requests = 0;       ///< writes that were posted: data, credits, farewells
  std::uint64_t completed = 0;           ///< of them, those that are known to have reached the peer
  std::uint64_t receives_posted = 0;     ///< places for messages of the peers
  std::uint64_t received = 0;            ///< of them, those that have been used up
  std::uint64_t credit_messages = 0;     ///< writes that only returned credits
  std::uint64_t receiver_not_ready = 0;  ///< queue pairs that failed because a peer had no place for a message
  std::size_t locked_bytes = 0;          ///< registered memory

  friend bool operator==(verbs_statistics const&, verbs_statistics const&) = default;
};

}  // namespace rondo::inline v0
