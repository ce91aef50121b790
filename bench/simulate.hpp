#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rondo::bench {

struct simulate_options {
  std::string collective = "all_reduce";
  std::vector<int> ranks{4, 64, 1024};
  std::vector<std::size_t> bytes{std::size_t{1} << 10, std::size_t{1} << 20, std::size_t{64} << 20};
  double alpha_us = 5;      ///< latency of a message
  double beta_GBps = 12.5;  ///< bandwidth of a link
  double gamma_GBps = 20;   ///< speed of folding
  int root = 0;
};

/// `rondo simulate`: what the cost model predicts for every algorithm. Needs no network and no ranks.
int simulate(simulate_options const& options);

}  // namespace rondo::bench
