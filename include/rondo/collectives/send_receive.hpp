#pragma once

#include <rondo/collectives/request.hpp>
#include <rondo/schedule.hpp>

#include <cstddef>
#include <span>

namespace rondo::inline v0::collectives {

/// One message from one rank to another, as a schedule of one round.
struct single_message {
  int n;
  rank_t sender, receiver;

  constexpr int ranks() const noexcept { return n; }
  constexpr int chunks() const noexcept { return 1; }
  constexpr int rounds() const noexcept { return 1; }
  constexpr int period() const noexcept { return 1; }
  constexpr step at(rank_t r, int) const noexcept {
    if (r == sender) return {.to = receiver, .out = {0, 1}};
    if (r == receiver) return {.from = sender, .in = {0, 1}};
    return {};
  }
};

/// The end of a message that this rank sends or receives.
template <class T>
struct message : symmetric {
  static constexpr collective kind = collective::send_receive;

  std::span<T> data;
  rank_t peer;

  std::size_t bytes() const noexcept { return data.size_bytes(); }

  void prepare(run::job& j, rank_t rank, int ranks) const {
    check_root("send or receive", peer, ranks);
    if (peer == rank) refuse({"a rank cannot send to itself: copy the buffer instead"});
    mark_type<std::remove_const_t<T>>(j, data.size());
    auto* const place = reinterpret_cast<std::byte*>(const_cast<std::remove_const_t<T>*>(data.data()));
    j.chunks.push_back({place, place, data.size()});
  }
};

}  // namespace rondo::inline v0::collectives
