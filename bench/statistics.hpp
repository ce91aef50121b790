#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace rondo::bench {

inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

/// What is reported of the times of one series of calls, in the unit of the samples.
struct summary {
  double min = not_measured, p50 = not_measured, p99 = not_measured;
};

/// The q-quantile of sorted samples, interpolated linearly between neighbours (type 7 of Hyndman and Fan, 1996).
inline double quantile(std::span<double const> sorted, double q) {
  if (sorted.empty()) return not_measured;
  auto const position = q * static_cast<double>(sorted.size() - 1);
  auto const below = static_cast<std::size_t>(position);
  auto const above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

inline summary summarise(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {quantile(samples, 0), quantile(samples, 0.5), quantile(samples, 0.99)};
}

/// A collective is as slow as its slowest rank: the element-wise maximum of what every rank measured, where
/// `by_rank[r * iterations + i]` is rank r's time of iteration i.
inline std::vector<double> slowest(std::span<double const> by_rank, std::size_t iterations) {
  std::vector<double> worst(iterations, 0.0);
  for (std::size_t k = 0; k < by_rank.size(); ++k) worst[k % iterations] = std::max(worst[k % iterations], by_rank[k]);
  return worst;
}

/// The iterations that fit into `budget_s` when one takes `one_s`, within the limits.
inline int iterations_for(double budget_s, double one_s, int at_least, int at_most) {
  if (!(one_s > 0)) return at_most;
  return static_cast<int>(std::clamp(budget_s / one_s, static_cast<double>(at_least), static_cast<double>(at_most)));
}

inline double geometric_mean(std::span<double const> values) {
  if (values.empty()) return not_measured;
  double sum = 0;
  for (double const v : values) sum += std::log(v);
  return std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace rondo::bench
