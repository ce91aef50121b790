#pragma once

#include <rondo/group.hpp>
#include <rondo/run/families.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace rondo::inline v0::run {

/// What the ranks of a communicator tell each other about where they run: all decide alike by it.
struct surroundings {
  world_shape shape;
  bool crowded = false;  ///< this rank's host has more ranks than cores
  bool boards = false;   ///< all ranks share memory that calls can go through
};

/// `board` says that this rank's transport has one. Every rank of the group must call; blocks until all have.
inline surroundings survey(group& g, bool board, group::clock::time_point deadline) {
  surroundings found{{g.size(), {}}};
  if (g.size() == 1) {
    found.shape.hosts = {1};
    return found;
  }
  std::string host;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> host;
  auto hosts = g.exchange((board ? '+' : '-') + host, deadline);
  found.boards = std::all_of(hosts.begin(), hosts.end(), [](std::string const& h) { return h.starts_with('+'); });
  for (std::string& h : hosts) h.erase(0, 1);
  auto const here = std::count(hosts.begin(), hosts.end(), host);
  found.crowded = here > std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN));
  std::vector<std::string> seen;
  for (std::string const& h : hosts) {
    if (!seen.empty() && seen.back() == h) {
      ++found.shape.hosts.back();
    } else if (std::find(seen.begin(), seen.end(), h) == seen.end()) {
      seen.push_back(h);
      found.shape.hosts.push_back(1);
    } else {
      found.shape.hosts = {g.size()};  // the ranks of a host are not neighbours: groups of ranks would cut across hosts
      break;
    }
  }
  return found;
}

}  // namespace rondo::inline v0::run
