#pragma once

#include "statistics.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::bench {

/// One measured series of calls: what `--json` and `--csv` hold.
struct row {
  std::string transport;
  int ranks = 0;
  std::string algorithm;
  std::string chosen;  ///< automatic: the algorithm that it took; else empty
  std::string collective;
  std::string type;
  std::string op;  ///< "none" for collectives that only move data
  int root = -1;
  std::string workload;   ///< "" for a plain size, else a name such as "gpt2 in buckets of 25 MiB"
  std::size_t bytes = 0;  ///< of all buffers together; blocked collectives: of all blocks
  std::size_t count = 0;
  bool in_place = false;
  int buffers = 1;                                                             ///< calls in one iteration
  int iterations = 0;                                                          ///< that were timed
  double min_us = not_measured, p50_us = not_measured, p99_us = not_measured;  ///< of the slowest rank of an iteration
  double algbw_GBps = not_measured;                                            ///< bytes / p50
  double busbw_GBps = not_measured;  ///< algbw times the factor that makes collectives comparable
  std::size_t wrong = 0;             ///< elements outside their bounds, on all ranks
  bool checked = false;              ///< false: `wrong` was not counted
  bool hashes_equal = true;          ///< all ranks held the same bytes after every iteration, where they should
  double flag_round_trip_ns = not_measured;
  double limit_us = not_measured;  ///< what this machine needs at least, measured in the same run

  /// Part of the measured limit that was reached: 1 is the limit.
  double share() const { return limit_us / p50_us; }
  bool good() const { return wrong == 0 && hashes_equal; }
};

/// Rows as one line of JSON, and back: how they travel from rank 0 to the command.
std::string to_line(std::span<row const> rows);
std::vector<row> from_line(std::string_view line);

/// Writes an array of rows, one a line. Throws usage_error when the file cannot be written.
void write_json(std::string const& path, std::span<row const> rows);
void write_csv(std::string const& path, std::span<row const> rows);

}  // namespace rondo::bench
