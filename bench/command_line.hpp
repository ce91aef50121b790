#pragma once

namespace rondo::bench {

/// Parses the arguments of `rondo`, does what they ask, and returns the exit status: 0, 1 when a result was wrong or a
/// run failed, 2 when the arguments make no sense.
int run_command(int argc, char** argv);

}  // namespace rondo::bench
