#pragma once

#include "collective.hpp"
#include "sizes.hpp"

#include <string>
#include <vector>

namespace rondo::bench {

struct compare_options {
  collective what = collective::all_reduce;
  std::vector<std::string> transports;  ///< none: all
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

/// `rondo compare`: every algorithm x transport x size x number of ranks, each result checked; a table here and one
/// page with plots. Returns the exit status: 1 if any result was wrong.
int compare(compare_options const& options);

}  // namespace rondo::bench
