#pragma once

#include <rondo/schedule/schedule_ref.hpp>

#include <string>

namespace rondo::bench {

/// What every rank receives in every round, as a table for a terminal: rounds down, ranks across. "3<2 +" means that
/// chunk 3 arrives from rank 2 and is folded, "=" that it overwrites, "*" that it is final from then on.
std::string timeline(schedule_ref const& s);

}  // namespace rondo::bench
