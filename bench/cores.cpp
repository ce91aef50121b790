#include "cores.hpp"

#include <cstddef>
#include <sched.h>

namespace rondo::bench {

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int c = 0; c < CPU_SETSIZE; ++c)
    if (CPU_ISSET(c, &set)) cores.push_back(c);
  return cores;
}

void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

bool crowded(std::vector<int> const& cores, int ranks) { return static_cast<std::size_t>(ranks) > cores.size(); }

void pin_rank(std::vector<int> const& cores, int rank, int ranks) {
  if (!crowded(cores, ranks)) pin_to(cores[static_cast<std::size_t>(rank)]);
}

}  // namespace rondo::bench
