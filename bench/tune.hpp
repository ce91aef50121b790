#pragma once

#include "collective.hpp"
#include "sizes.hpp"

#include <string>
#include <vector>

namespace rondo::bench {

struct tune_options {
  std::vector<collective> collectives;  ///< none: those that several algorithms offer
  std::vector<std::string> transports;  ///< none: the usual ones
  std::vector<int> ranks{2, 3, 4};
  size_range sizes{.begin = 8, .end = std::size_t{64} << 20};
  double minutes = 8;
  bool pin = true;
  int timeout_s = 30;
  std::string file = "rondo.policy";
};

/// `rondo tune`: measures every algorithm here and writes the choices to a file for communicator_options::policy or
/// RONDO_POLICY; prints what they change. Returns the exit status: 1 if a set of ranks failed or a result was wrong,
/// and then writes nothing.
int tune(tune_options const& options);

}  // namespace rondo::bench
