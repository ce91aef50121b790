#pragma once

#include "statistics.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace rondo::bench::peers {

/// What a row of the table is about.
enum class role {
  limit,           ///< what the machine needs without a library, from inputs to outputs
  limit_in_place,  ///< and where these are the same
  registered,      ///< rondo with buffers of its own
  plain,           ///< rondo with the user's buffers
  stream,          ///< rondo over TCP
  peer,            ///< another library
  peer_stream      ///< another library over TCP
};

/// One system at one size.
struct cell {
  summary us;
  int calls = 0;
  bool wrong = false;

  /// The median that may be compared with others: not measured where a result was wrong.
  double time() const { return wrong ? not_measured : us.p50; }
};

/// One system: a cell for each size.
struct entry {
  std::string name;
  role what;
  std::vector<cell> cells;
};

/// A quotient of medians for each size; NaN where one of them is missing.
struct ratio {
  std::string name;
  std::vector<double> values;
};

/// The smallest median at each size of all systems that `of` accepts; NaN where there is none.
std::vector<double> best_of(std::vector<entry> const& entries, bool (*of)(role));

/// What rondo is judged by: registered buffers over the limits, plain buffers over the best peer, and over TCP over
/// each peer that uses TCP. Those whose systems are missing are left out.
std::vector<ratio> ratios_of(std::vector<entry> const& entries);

/// The table: a row for each system and ratio, a column for each size, microseconds. flag_ns is the round trip of a
/// flag between two cores while each size was measured.
std::string table_of(std::vector<std::size_t> const& sizes, std::vector<double> const& flag_ns,
                     std::vector<entry> const& entries);

}  // namespace rondo::bench::peers
