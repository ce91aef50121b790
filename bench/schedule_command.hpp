#pragma once

#include <string>

namespace rondo::bench {

struct schedule_options {
  std::string algorithm;
  std::string collective = "all_reduce";
  int ranks = 4;
  int root = 0;
  std::string svg;      ///< file to draw into; empty: none
  bool verify = false;  ///< print what the verifier proves
};

/// `rondo schedule`: shows what an algorithm makes every rank do in every round. Returns 1 if it is not correct.
int show_schedule(schedule_options const& options);

}  // namespace rondo::bench
