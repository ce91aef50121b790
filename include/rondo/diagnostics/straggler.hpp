#pragma once

#include <rondo/types.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace rondo::inline v0 {

/// Who holds the others up: a rolling view of how much time each rank spends by itself in a step.
class straggler_log {
 public:
  using seconds = std::chrono::duration<double>;

  struct entry {
    seconds late{};           ///< behind the fastest rank of the step: mean over the last steps, older ones fade
    std::size_t slowest = 0;  ///< steps in which no rank took longer
  };

  /// Half of a step's weight is gone after `half_life` steps.
  explicit straggler_log(double half_life = 50) noexcept : fade_(std::exp2(-1 / half_life)) {}

  /// One step: the time of each rank.
  void add(std::span<seconds const> own) {
    if (own.empty()) return;
    ranks_.resize(own.size());
    auto const [fastest, slowest] = std::minmax_element(own.begin(), own.end());
    double const fresh = (1 - fade_) / (1 - std::pow(fade_, static_cast<double>(++steps_)));
    for (std::size_t r = 0; r < own.size(); ++r) ranks_[r].late += fresh * (own[r] - *fastest - ranks_[r].late);
    ++ranks_[static_cast<std::size_t>(slowest - own.begin())].slowest;
  }

  std::size_t steps() const noexcept { return steps_; }

  /// By rank.
  std::span<entry const> ranks() const noexcept { return ranks_; }

  /// The rank that is latest on average, or nobody before the first step.
  rank_t slowest() const noexcept {
    auto const latest =
        std::max_element(ranks_.begin(), ranks_.end(), [](entry const& a, entry const& b) { return a.late < b.late; });
    return latest == ranks_.end() ? nobody : static_cast<rank_t>(latest - ranks_.begin());
  }

  /// One line for people: "rank 2 is 12.3 ms behind the fastest and was the slowest in 80 of 100 steps".
  std::string text() const {
    if (steps_ == 0) return "no step yet";
    rank_t const r = slowest();
    entry const& e = ranks_[static_cast<std::size_t>(r)];
    char line[120];
    std::snprintf(line, sizeof line, "rank %d is %.3g ms behind the fastest and was the slowest in %zu of %zu steps", r,
                  1e3 * e.late.count(), e.slowest, steps_);
    return line;
  }

 private:
  double fade_;
  std::size_t steps_ = 0;
  std::vector<entry> ranks_;
};

}  // namespace rondo::inline v0
