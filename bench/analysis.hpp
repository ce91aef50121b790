#pragma once

#include "row.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace rondo::bench {

/// Times that differ by less than this factor say nothing about which algorithm is faster: the leader at one size keeps
/// the lead at the next unless another is faster by more.
inline constexpr double level = 1.05;

/// All algorithms at one size.
struct contest {
  std::size_t bytes = 0;
  std::vector<row const*> by_time;  ///< fastest first; without automatic
  row const* automatic = nullptr;   ///< what the library chose by itself
  row const* leader = nullptr;      ///< who counts as the fastest: see level
  double limit_us = not_measured;

  row const* best() const { return by_time.empty() ? automatic : by_time.front(); }

  /// How much slower the second is; 1 if there is none.
  double lead() const { return by_time.size() < 2 ? 1 : by_time[1]->p50_us / by_time[0]->p50_us; }

  /// Time of the algorithm that the library chooses over that of the best; NaN where one is missing. What counts is the
  /// row of that algorithm where there is one: that of `automatic` differs from it by noise alone.
  double regret() const;
};

/// One transport and number of ranks: contests by size.
struct panel {
  std::string transport;
  int ranks = 0;
  std::vector<contest> contests;
};

/// Consecutive sizes with the same leader.
struct reign {
  std::string algorithm;
  std::size_t from, to;  ///< sizes that were measured
};

/// The plain sizes in the rows, by transport and ranks in the order of their first appearance. The panels point into
/// the rows. Names that are not known as algorithms, such as those of other libraries, take part like any other.
std::vector<panel> panels_of(std::span<row const> rows);

std::vector<reign> reigns_of(panel const& p);

/// "recursive_doubling up to 4 KiB, ring from 32 KiB".
std::string describe(std::span<reign const> reigns);

/// The regret of all contests together; count 0 where there was none to find.
struct regrets {
  std::size_t count = 0;
  double mean = not_measured;  ///< geometric
  double worst = not_measured;
  contest const* worst_contest = nullptr;
  panel const* worst_panel = nullptr;
};
regrets regrets_of(std::span<panel const> panels);

/// The names of all algorithms in the rows, in order of first appearance.
std::vector<std::string> algorithms_in(std::span<row const> rows);

/// Elements out of bounds, and rows whose ranks disagreed.
struct verdict_of_rows {
  std::size_t rows = 0, checked = 0, wrong = 0, unequal = 0;
  bool good() const { return wrong == 0 && unequal == 0; }
};
verdict_of_rows judge(std::span<row const> rows);

}  // namespace rondo::bench
