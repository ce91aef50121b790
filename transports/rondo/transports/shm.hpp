#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/detail/file_descriptor.hpp>
#include <rondo/detail/ring_streams.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/group.hpp>
#include <rondo/pollable.hpp>
#include <rondo/transports/shm/door.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// Byte streams between processes of one host, through anonymous memory that they hand each other.
///
/// Nothing has a name, so nothing is left behind when a rank is killed. That two ranks are on one host is proved by
/// reaching each other's socket with a token, never believed from a host name.
class shm : public detail::ring_streams {
 public:
  static constexpr std::string_view name = "shm";

  /// Connects the ranks of a group. Every rank must call; blocks until all have. Throws connect_error naming a rank
  /// that is on another host, and error with sizes if memory is short.
  static shm connect(std::shared_ptr<group> const& g,
                     group::clock::time_point deadline = group::clock::now() + std::chrono::minutes(5)) {
    auto const layout = detail::inbox_layout::of(g->size());
    std::vector<detail::inbox> inboxes(static_cast<std::size_t>(g->size()));
    auto const& mine = detail::by_rank(inboxes, g->rank()) = detail::make_inbox(layout);

    detail::door const door(g->size());
    auto const secrets = g->exchange(door.secret(), deadline);
    // A connection waits until it is let in, so all ranks may ask first and answer afterwards.
    std::vector<detail::file_descriptor> asked(secrets.size());
    for (rank_t q = 0; q < g->size(); ++q) {
      if (q == g->rank()) continue;
      auto& call = detail::by_rank(asked, q) = detail::door::knock(detail::by_rank(secrets, q));
      if (!call) fail_unreachable(*g, q);
    }
    for (int answered = 1; answered < g->size();) {
      if (!door.rings_before(deadline)) fail_late(*g, answered);
      auto const caller = door.let_in(deadline);
      if (caller && detail::send_descriptors(caller.get(), std::array{mine.memory->get(), mine.waker->get()}))
        ++answered;
    }
    for (rank_t q = 0; q < g->size(); ++q) {
      if (q == g->rank()) continue;
      int const call = detail::by_rank(asked, q).get();
      if (!detail::readable_before(call, deadline)) fail_unreachable(*g, q);
      auto [memory, waker] = detail::receive_descriptors<2>(call);
      if (!memory) fail_unreachable(*g, q);
      detail::by_rank(inboxes, q) = {std::make_shared<detail::file_descriptor const>(std::move(memory)),
                                     std::make_shared<detail::file_descriptor const>(std::move(waker))};
    }
    return shm(g->rank(), layout, inboxes);
  }

  /// The ranks, itself among them, whose sockets this one can reach. Every rank must call; blocks until all have.
  static std::vector<bool> reach(group& g, group::clock::time_point deadline) {
    std::vector<bool> reached(static_cast<std::size_t>(g.size()));
    std::optional<detail::door> door;
    try {
      door.emplace(g.size());
    } catch (connect_error const&) {}  // then nobody is reached, and nobody reaches this rank
    auto const secrets = g.exchange(door ? door->secret() : std::string_view(), deadline);
    for (std::size_t q = 0; q < reached.size(); ++q) reached[q] = bool(detail::door::knock(secrets[q]));
    g.exchange({}, deadline);  // nobody shuts its door before all have tried it
    return reached;
  }

 private:
  using ring_streams::ring_streams;

  [[noreturn, gnu::cold]] static void fail_unreachable(group& g, rank_t q) {
    failure const why{failure::kind::other, q,
                      detail::text_of({"ranks ", g.rank(), " and ", q,
                                       " cannot share memory, they are on different hosts or in different containers: "
                                       "use tcp"})};
    g.report(why);
    throw connect_error(why.what, q);
  }

  [[noreturn, gnu::cold]] static void fail_late(group& g, int answered) {
    if (g.failed()) g.verdict().raise();
    throw connect_error(
        detail::text_of({"only ", answered, " of ", g.size(),
                         " ranks came to connect over shared memory before the deadline: let every rank connect"}));
  }
};

static_assert(pollable<shm>);

}  // namespace rondo::inline v0
