#pragma once

#include <rondo/detail/file_text.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>
#include <rondo/group.hpp>
#include <rondo/run/families.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sched.h>
#include <type_traits>
#include <vector>

namespace rondo::inline v0::run {

/// What the ranks of a communicator tell each other about where they run: all decide alike by it.
struct surroundings {
  world_shape shape;
  int hosts = 1;         ///< on which they run; more than in the shape if the ranks of a host are not neighbours
  bool crowded = false;  ///< more ranks than cores want to run where this one does
  bool turns = false;    ///< the same for rank 0, and so alike on all ranks
  bool boards = false;   ///< all ranks share memory that calls can go through
};

/// Where one rank runs, as it tells the others.
struct whereabouts {
  std::array<char, 40> host{};  ///< what the kernel of a host calls this boot of it
  cpu_set_t cores{};            ///< that the rank may use
  bool board = false;           ///< its transport has memory that its ranks share
  std::uint64_t policy = 0;     ///< digest of its measured choices
  rank_t leader = nobody;       ///< the lowest rank of its host, as its transport has proved; nobody if it cannot tell

  /// What this rank knows by itself: its host and its cores.
  static whereabouts here() {
    whereabouts me;
    if (auto const boot = detail::file_text("/proc/sys/kernel/random/boot_id"))
      boot->copy(me.host.data(), me.host.size() - 1);
    ::sched_getaffinity(0, sizeof me.cores, &me.cores);
    return me;
  }

  /// Not the kernel but the transport says what a host is, if it can: containers share the one and not the other.
  bool shares_host(whereabouts const& other) const noexcept {
    return leader == other.leader && (leader != nobody || host == other.host);
  }
};

static_assert(std::is_trivially_copyable_v<whereabouts>);

/// Must ranks take turns on the cores of this one?
inline bool crowded(whereabouts const& me, std::vector<whereabouts> const& all) {
  cpu_set_t cores = me.cores;
  int ranks = 0;
  for (whereabouts const& other : all) {
    cpu_set_t common;
    CPU_AND(&common, &me.cores, &other.cores);
    if (other.host != me.host || CPU_COUNT(&common) == 0) continue;
    CPU_OR(&cores, &cores, &other.cores);
    ++ranks;
  }
  return ranks > CPU_COUNT(&cores);
}

/// Ranks that choose by different measurements would call past each other sooner or later.
inline void check_policies(std::vector<whereabouts> const& all) {
  for (std::size_t q = 1; q < all.size(); ++q)
    if (all[q].policy != all[0].policy)
      throw connect_error(
          detail::text_of({"rank ", q, " has ",
                           all[q].policy == 0   ? "no policy, but rank 0 has one"
                           : all[0].policy == 0 ? "a policy, but rank 0 has none"
                                                : "another policy than rank 0",
                           ": give all ranks the same, by communicator_options::policy or RONDO_POLICY, or none"}),
          static_cast<rank_t>(q));
}

/// The lowest rank of this one's host, as the transport has proved by its member host_leader(); nobody if it cannot
/// tell.
template <class X>
rank_t host_leader(X const& x) noexcept {
  if constexpr (requires { x.host_leader(); }) return x.host_leader();
  return nobody;
}

/// `me` is complete for this rank. Every rank of the group must call; blocks until all have. Throws connect_error, on
/// all ranks, if the policies differ.
inline surroundings survey(group& g, whereabouts const& me, group::clock::time_point deadline) {
  surroundings found{{g.size(), {}}};
  if (g.size() == 1) {
    found.shape.hosts = {1};
    return found;
  }
  std::vector<whereabouts> all(static_cast<std::size_t>(g.size()));
  auto const blobs = g.exchange({reinterpret_cast<char const*>(&me), sizeof me}, deadline);
  for (std::size_t q = 0; q < all.size(); ++q)
    std::memcpy(&all[q], blobs[q].data(), std::min(blobs[q].size(), sizeof me));
  check_policies(all);
  found.boards = std::all_of(all.begin(), all.end(), [](whereabouts const& w) { return w.board; });
  found.crowded = crowded(me, all);
  found.turns = crowded(all.front(), all);
  bool neighbours = true;
  for (std::size_t q = 0; q < all.size(); ++q) {
    if (q > 0 && all[q].shares_host(all[q - 1])) {
      ++found.shape.hosts.back();
      continue;
    }
    std::size_t first = 0;
    while (!all[q].shares_host(all[first])) ++first;
    if (first == q)
      found.shape.hosts.push_back(1);
    else
      neighbours = false;
  }
  found.hosts = static_cast<int>(found.shape.hosts.size());
  if (!neighbours) found.shape.hosts = {g.size()};  // groups of ranks would cut across hosts
  return found;
}

}  // namespace rondo::inline v0::run
