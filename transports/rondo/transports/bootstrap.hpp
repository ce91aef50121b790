#pragma once

#include <rondo/detail/text.hpp>
#include <rondo/group.hpp>
#include <rondo/transports/bootstrap/knock.hpp>
#include <rondo/transports/bootstrap/socket_group.hpp>
#include <rondo/transports/bootstrap/solo_group.hpp>
#include <rondo/transports/environment.hpp>

#include <array>
#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

struct join_options {
  std::chrono::milliseconds deadline = std::chrono::minutes(5);  ///< for all ranks to arrive
};

/// Joins this rank to its job: returns once all ranks are there. Every rank calls it once, as a process or as a thread.
///
/// Ranks prove to each other that they know the token and compare the version and the world size; strangers,
/// duplicates and ranks outside the world are turned away while the job goes on, a different world size or version
/// fails it on both sides. Rank 0 hosts the coordinator, at the address of the environment, until it has destroyed its
/// last group. A world of 1 opens no socket.
///
/// Throws invalid_argument for an environment that no job could have; connect_error, which names the ranks that are
/// missing or the reason for a refusal, otherwise.
inline std::shared_ptr<group> join(environment const& who = environment::detect(), join_options options = {}) {
  using namespace detail;
  if (who.size < 1 || who.rank < 0 || who.rank >= who.size)
    throw invalid_argument(
        text_of({"rank ", who.rank, " of ", who.size, " cannot join: ranks go from 0 to the world size - 1"}));
  if (who.ports < 1 || who.port + who.ports > 65536)
    throw invalid_argument(text_of({"there are no ", who.ports, " ports from ", who.port, " on: ports end at 65535"}));
  if (who.size == 1) return std::make_shared<solo_group>();

  auto const deadline = steady::now() + options.deadline;
  hub_owner hub;
  std::pair<frame_stream, identity> way;
  if (who.rank == 0) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) != 0)
      throw connect_error(
          text_of({"rank 0 has no descriptors for its control plane (", error_text(errno), "): raise ulimit -n"}));
    file_descriptor mine(ends[0]), theirs(ends[1]);
    way = {frame_stream(std::move(mine), frame_stream::member_limit + 64), identity::own()};
    hub.reset(new coordinator(who.size, secret_of(who), open_door(who, deadline), std::move(theirs), place_of(who)));
  } else {
    way = knock(who, deadline);
  }

  auto const session = std::make_shared<control_session>(std::move(hub), std::move(way.first), std::move(way.second));
  std::vector<rank_t> all(static_cast<std::size_t>(who.size));
  std::iota(all.begin(), all.end(), 0);
  auto const world = std::make_shared<socket_group>(session, 0, std::move(all), who.rank);
  session->link.start();
  try {
    world->exchange({}, deadline);
  } catch (connect_error const&) { throw; } catch (error const&) {
    auto const why = world->verdict();
    throw connect_error(why.what.empty() ? "rank 0 ended while this rank joined: see its output" : why.what, why.rank);
  }
  return world;
}

}  // namespace rondo::inline v0
