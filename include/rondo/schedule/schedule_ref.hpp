#pragma once

#include <rondo/schedule.hpp>

namespace rondo::inline v0 {

/// A schedule of any algorithm behind one type, so that what reads schedules is compiled once, at the price of an
/// indirect call for each step. Refers to the schedule that it was made from.
class schedule_ref {
 public:
  template <schedule S>
  explicit schedule_ref(S const& s) noexcept
      : keeps_rank_order([] {
          if constexpr (requires { S::keeps_rank_order; }) return S::keeps_rank_order;
          return true;
        }()),
        uniform_tree([] {
          if constexpr (requires { S::uniform_tree; }) return S::uniform_tree;
          return true;
        }()),
        inside_(&s),
        at_([](void const* inside, rank_t r, int i) noexcept { return static_cast<S const*>(inside)->at(r, i); }),
        ranks_(s.ranks()), chunks_(s.chunks()), rounds_(s.rounds()), period_(s.period()) {}

  int ranks() const noexcept { return ranks_; }
  int chunks() const noexcept { return chunks_; }
  int rounds() const noexcept { return rounds_; }
  int period() const noexcept { return period_; }
  step at(rank_t r, int i) const noexcept { return at_(inside_, r, i); }

  /// What the schedule declares of its folds; one that folds nothing keeps every order.
  bool keeps_rank_order, uniform_tree;

 private:
  void const* inside_;
  step (*at_)(void const*, rank_t, int) noexcept;
  int ranks_, chunks_, rounds_, period_;
};

static_assert(schedule<schedule_ref>);

}  // namespace rondo::inline v0
