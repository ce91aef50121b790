#pragma once

#include "world.hpp"
#include <rondo/transports/environment.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <string>

namespace rondo::bench {

/// What one rank does, once it is connected.
using connected_rank = std::function<void(int rank, comm& c)>;

/// Runs body on `ranks` threads of this process; rethrows the error of the lowest rank that had one.
void run_threads(int ranks, std::chrono::seconds deadline, connected_rank const& body);

/// Makes this process the rank of a job that the environment says, and runs body.
void with_process_rank(environment const& who, std::string const& transport, std::chrono::seconds deadline,
                       connected_rank const& body);

/// Two connected, non-blocking TCP sockets over loopback without delays.
std::array<int, 2> loopback_pair();

}  // namespace rondo::bench
