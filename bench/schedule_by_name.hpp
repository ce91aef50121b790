#pragma once

#include "collective.hpp"
#include <rondo/schedule/schedule_ref.hpp>

#include <functional>

namespace rondo::bench {

/// Calls f with the schedule by which the algorithm does the collective on one host. Throws invalid_argument if it does
/// not provide it.
void with_schedule(algorithm how, collective what, int ranks, rank_t root,
                   std::function<void(schedule_ref const&)> const& f);

}  // namespace rondo::bench
