#pragma once

#include "row.hpp"

#include <span>
#include <string>
#include <vector>

namespace rondo::bench {

struct report_facts {
  std::string machine;  ///< one line
  std::string date;     ///< of the run, for people
  std::string version;
  std::string command;                      ///< how to repeat it
  double seconds = 0;                       ///< that the run took
  int cores = 0;                            ///< that the ranks could use
  std::vector<double> flag_round_trips_ns;  ///< median of each world
};

/// One self-contained page: what was measured, what to conclude, maps of the winners, plots, tables. Needs no network,
/// no script, no font; suits light and dark screens, paper, and readers who cannot tell colours apart.
std::string report_page(report_facts const& facts, std::span<row const> rows);

}  // namespace rondo::bench
