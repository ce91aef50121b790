#pragma once

#include <rondo/schedule.hpp>

#include <cstddef>
#include <vector>

/// What the tests of schedules share: schedules written out as tables, which can be bent out of shape.
namespace schedule_tools {

using namespace rondo;

/// The rounds of a schedule as rows of one step a rank. Owns them; `view()` is the schedule.
class table {
 public:
  /// Trivially copyable, as a schedule has to be; must not outlive its table.
  struct schedule {
    table const* rows;

    int ranks() const noexcept { return rows->ranks_; }
    int chunks() const noexcept { return rows->chunks_; }
    int rounds() const noexcept { return static_cast<int>(rows->rounds_.size()); }
    int period() const noexcept { return rows->period_; }
    step at(rank_t r, int i) const noexcept {
      return rows->rounds_[static_cast<std::size_t>(i)][static_cast<std::size_t>(r)];
    }
  };

  template <rondo::schedule S>
  explicit table(S const& s) : ranks_(s.ranks()), chunks_(s.chunks()), period_(s.period()) {
    for (int i = 0; i < s.rounds(); ++i) {
      rounds_.emplace_back();
      for (rank_t r = 0; r < ranks_; ++r) rounds_.back().push_back(s.at(r, i));
    }
  }

  table(int ranks, int chunks, std::vector<std::vector<step>> rounds)
      : ranks_(ranks), chunks_(chunks), period_(rounds.empty() ? 1 : static_cast<int>(rounds.size())),
        rounds_(std::move(rounds)) {}

  schedule view() const { return {this}; }
  int rounds() const { return static_cast<int>(rounds_.size()); }
  step& at(rank_t r, int i) { return rounds_[static_cast<std::size_t>(i)][static_cast<std::size_t>(r)]; }

  void set_period(int period) { period_ = period; }

  /// A new round in which nothing happens yet, before round `i`.
  void insert_round(int i) {
    rounds_.insert(rounds_.begin() + i, std::vector<step>(static_cast<std::size_t>(ranks_), step{}));
    period_ = rounds();
  }

 private:
  int ranks_;
  int chunks_;
  int period_;
  std::vector<std::vector<step>> rounds_;
};

}  // namespace schedule_tools
