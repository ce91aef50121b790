#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/detail/file_descriptor.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>
#include <rondo/group.hpp>
#include <rondo/transports/shm/door.hpp>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

[[noreturn, gnu::cold]] inline void fail_apart(group& g, rank_t q) {
  failure const why{failure::kind::other, q,
                    text_of({"ranks ", g.rank(), " and ", q,
                             " cannot share memory, they are on different hosts or in different containers: use tcp"})};
  g.report(why);
  throw connect_error(why.what, q);
}

/// Hands descriptors to every other rank and returns theirs, by rank; this rank's entry stays empty. Every rank must
/// call; blocks until all have. Throws connect_error naming a rank that is on another host.
template <std::size_t N>
std::vector<std::array<file_descriptor, N>> exchange_descriptors(group& g, std::array<int, N> const& mine,
                                                                 group::clock::time_point deadline) {
  door const own(g.size());
  auto const secrets = g.exchange(own.secret(), deadline);
  // A connection waits until it is let in, so all ranks may ask first and answer afterwards.
  std::vector<file_descriptor> asked(secrets.size());
  for (rank_t q = 0; q < g.size(); ++q) {
    if (q == g.rank()) continue;
    auto& call = by_rank(asked, q) = door::knock(by_rank(secrets, q));
    if (!call) fail_apart(g, q);
  }
  for (int answered = 1; answered < g.size();) {
    if (!own.rings_before(deadline)) {
      if (g.failed()) g.verdict().raise();
      throw connect_error(
          text_of({"only ", answered, " of ", g.size(),
                   " ranks came to connect over shared memory before the deadline: let every rank connect"}));
    }
    auto const caller = own.let_in(deadline);
    if (caller && send_descriptors(caller.get(), mine)) ++answered;
  }
  std::vector<std::array<file_descriptor, N>> theirs(secrets.size());
  for (rank_t q = 0; q < g.size(); ++q) {
    if (q == g.rank()) continue;
    int const call = by_rank(asked, q).get();
    if (readable_before(call, deadline)) by_rank(theirs, q) = receive_descriptors<N>(call);
    if (!by_rank(theirs, q).front()) fail_apart(g, q);
  }
  return theirs;
}

}  // namespace rondo::inline v0::detail
