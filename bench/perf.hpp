#pragma once

#include "collective.hpp"
#include "datatype.hpp"
#include "measure.hpp"
#include "sizes.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::bench {

struct perf_options {
  size_range sizes;
  int iterations = 0;  ///< 0: as many as fit into budget_s
  int warm_up = 3;
  int checks = 1;
  double budget_s = 0.3;  ///< for each series
  int timeout_s = 120;
  int root = 0;
  std::vector<datatype> types{datatype::float32};
  std::vector<reduction> ops{reduction::sum};
  std::vector<collective> collectives{collective::all_reduce};
  std::vector<std::string> algorithms{"automatic"};  ///< "all": every one that provides the collective
  std::vector<std::string> transports{"shm"};
  std::vector<int> ranks;           ///< none: 2, or what a launcher started
  std::vector<std::string> models;  ///< instead of sizes
  std::size_t bucket = std::size_t{25} << 20;
  std::size_t memory = std::size_t{1} << 30;  ///< for the gradients of a model, for each of input and output
  bool pin = true;
  bool limit = true;
  std::string json, csv;
};

/// `rondo perf`: measures and checks; prints tables in the format of nccl-tests. Returns the exit status: 1 if any
/// result was wrong. Throws usage_error or world_error.
int perf(perf_options const& options);

/// The gradient of a model, tensor by tensor and in buckets.
std::vector<workload> workloads_of(std::string_view model, datatype type, std::size_t bucket_bytes);

}  // namespace rondo::bench
