#pragma once

#include <vector>

namespace rondo::bench {

/// The cores that this thread may run on.
std::vector<int> allowed_cores();

/// Keeps the calling thread on one core.
void pin_to(int core);

/// Must so many ranks take turns on these cores?
bool crowded(std::vector<int> const& cores, int ranks);

/// Gives rank number `rank` of `ranks` on this host a core of its own, if there are enough.
void pin_rank(std::vector<int> const& cores, int rank, int ranks);

}  // namespace rondo::bench
