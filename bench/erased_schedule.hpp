#pragma once

#include "collective.hpp"
#include <rondo/schedule.hpp>

#include <functional>

namespace rondo::bench {

/// A schedule of any algorithm behind one type, so that what interprets schedules is compiled once. Refers to the
/// schedule that it was made from.
class erased_schedule {
 public:
  template <schedule S>
  explicit erased_schedule(S const& s)
      : inside_(&s),
        at_([](void const* inside, rank_t r, int i) noexcept { return static_cast<S const*>(inside)->at(r, i); }),
        ranks_(s.ranks()), chunks_(s.chunks()), rounds_(s.rounds()), period_(s.period()) {}

  int ranks() const noexcept { return ranks_; }
  int chunks() const noexcept { return chunks_; }
  int rounds() const noexcept { return rounds_; }
  int period() const noexcept { return period_; }
  step at(rank_t r, int i) const noexcept { return at_(inside_, r, i); }

 private:
  void const* inside_;
  step (*at_)(void const*, rank_t, int) noexcept;
  int ranks_, chunks_, rounds_, period_;
};

static_assert(schedule<erased_schedule>);

/// Calls f with the schedule by which the algorithm does the collective on one host. Throws invalid_argument if it does
/// not provide it.
void with_erased_schedule(algorithm how, collective what, int ranks, rank_t root,
                          std::function<void(erased_schedule const&)> const& f);

}  // namespace rondo::bench
