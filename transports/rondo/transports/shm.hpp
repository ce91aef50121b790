#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/detail/file_descriptor.hpp>
#include <rondo/detail/ring_streams.hpp>
#include <rondo/group.hpp>
#include <rondo/pollable.hpp>
#include <rondo/transports/shm/descriptors.hpp>
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

    auto theirs = detail::exchange_descriptors(*g, std::array{mine.memory->get(), mine.waker->get()}, deadline);
    for (rank_t q = 0; q < g->size(); ++q) {
      if (q == g->rank()) continue;
      auto& [memory, waker] = detail::by_rank(theirs, q);
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
};

static_assert(pollable<shm>);

}  // namespace rondo::inline v0
