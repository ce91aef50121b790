#pragma once

#include "collective.hpp"
#include "cores.hpp"
#include "world.hpp"

#include <cstddef>
#include <vector>

namespace rondo::bench {

/// The least time that this machine needs for a collective of floats, measured by probes that use no library: a bound
/// that no implementation over the same kind of link can beat by much. Microseconds of the slowest rank, median; NaN
/// where there are no resources for a probe. Every rank must call, and gets the same answer.
///
///  - Addressable transports: all buffers lie in shared memory; every rank computes its output straight from the inputs
///    (pull), or folds its slice and stores it into every output (push, push with non-temporal stores); the fastest
///    counts.
///  - TCP: every rank streams what must cross its link to the next rank through a raw loopback socket, while it reads
///  as
///    much from the previous one; nothing is folded.
///
/// Inputs are rewritten before and outputs read after every repetition, as for the calls that are compared with it.
double limit_us(member& me, collective what, std::size_t bytes, int root);

/// Median round trip of a flag between two cores in nanoseconds: about 100 where they share a cache, 300 to 500 where
/// the host has moved a virtual machine's cores apart. Runs two threads on the first two of `cores`, and no child:
/// after a fork every page costs a fault when it is written again. NaN with one core only.
double flag_round_trip_ns(std::vector<int> const& cores = allowed_cores());

}  // namespace rondo::bench
