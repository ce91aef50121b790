#pragma once

#include "analysis.hpp"
#include "collective.hpp"
#include "sizes.hpp"

#include <functional>
#include <string>
#include <vector>

namespace rondo::bench {

struct compare_options {
  collective what = collective::all_reduce;
  std::vector<std::string> transports;  ///< none: the usual ones
  std::vector<std::string> algorithms{"all"};
  std::vector<int> ranks;           ///< none: 2, 3, 4
  size_range sizes{.end = 0};       ///< end 0: 64 MiB, quick 4 MiB
  std::vector<std::string> models;  ///< none: gpt2 and resnet50; quick: resnet50
  double minutes = 0;               ///< of measuring; 0: 3.6, quick 0.8
  bool quick = false;
  bool pin = true;
  int timeout_s = 30;
  std::string report = "report.html";
  std::string json;
};

/// What the contests of all numbers of ranks over all transports gave.
struct contests {
  std::vector<row> rows;
  std::vector<double> flag_round_trips_ns;  ///< median of each set of ranks
  bool all_ran = true;                      ///< false: a set of ranks has failed, which was said at once
};

/// What is printed of one set of ranks when it has run.
using panel_printer = std::function<void(panel const&, double flag_ns)>;

/// Lets all algorithms take turns at every size, on ranks of its own. The options are complete: nothing is left to a
/// default. The caller must not have started threads.
contests hold_contests(compare_options const& options, panel_printer const& print);

/// The geometric mean and the worst regret of the rows in a line, or a line that says that there is none. `who` is what
/// chose.
std::string describe_regret(std::vector<row> const& rows, std::string const& who);

/// "the policy FILE" if RONDO_POLICY names one, else "the built-in model".
std::string who_chooses();

/// `rondo compare`: every algorithm x transport x size x number of ranks, each result checked; a table here and one
/// page with plots. Returns the exit status: 1 if any result was wrong.
int compare(compare_options const& options);

}  // namespace rondo::bench
