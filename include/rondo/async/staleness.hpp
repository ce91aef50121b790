#pragma once

#include <rondo/config.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace rondo::inline v0 {

/// How far the workers of a parameter server may run apart. Both bounds may be set, or one, or none.
struct staleness_bounds {
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  /// Steps that a worker may be ahead of the slowest live one when it pulls: stale synchronous parallel (Ho et al.
  /// 2013, "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server"). 0: all in step. In the
  /// long run nobody is faster than the slowest.
  std::uint64_t lead = none;

  /// Updates by others that may come between a worker's pull and its push (Agarwal and Duchi 2011, "Distributed Delayed
  /// Stochastic Optimization"): at least the number of workers - 1. A slow worker makes the others wait only when its
  /// gradient would become older than that.
  std::uint64_t delay = none;
};

/// Who may go on: the bookkeeping of a parameter server, without threads, clocks or messages of its own.
///
/// A worker's step is a pull and the push of the gradient that it computed from it. A worker that has not been heard of
/// for a lease is silent: it bounds nobody until it is heard of again, and what it computed in between is stale if the
/// others have gone further than the bounds allow. Among live workers the one that is furthest behind, respectively
/// that pulled first, never waits, hence somebody always goes on.
class staleness_ledger {
 public:
  using time = std::chrono::steady_clock::time_point;
  using duration = std::chrono::steady_clock::duration;

  staleness_ledger(std::size_t workers, staleness_bounds bounds, duration lease, time now)
      : bounds_(bounds), lease_(lease), workers_(workers, worker{.heard = now}) {}

  /// The worker asks for something, and waits from now on until pull(), push() or drop().
  void hear(std::size_t w, time now) {
    worker& me = workers_[w];
    bool const silent = !live(me, now);
    me.heard = now;
    me.waits = true;
    if (!silent) return;
    std::uint64_t most = me.steps;  // also of those that have left by now
    for (worker const& other : workers_) most = std::max(most, other.steps);
    bool const outrun = most > me.steps && most - me.steps - 1 > bounds_.lead;
    if (std::uint64_t const least = least_of_others(w, now); outrun && least != staleness_bounds::none)
      me.steps = std::max(me.steps, least);
    if (outrun || !feasible(updates_, nullptr, now)) me.view.reset();
  }

  /// Is the worker near enough to the slowest live one to read?
  bool may_pull(std::size_t w, time now) const { return lead(w, now) <= bounds_.lead; }

  /// Would every gradient under way still be young enough after the worker's? One that does not count changes nothing.
  bool may_push(std::size_t w, time now) const {
    return !counts(workers_[w]) || feasible(updates_ + 1, &workers_[w], now);
  }

  /// The worker has read the parameters; it computes from now on.
  void pull(std::size_t w, time now) {
    worker& me = workers_[w];
    largest_lead_ = std::max(largest_lead_, lead(w, now));
    me.view = updates_;
    rest(me, now);
  }

  /// The worker's step is over. True if its gradient counts; false if it is stale and must be dropped.
  bool push(std::size_t w, time now) {
    worker& me = workers_[w];
    rest(me, now);
    bool const counted = counts(me);
    if (counted) {
      largest_delay_ = std::max(largest_delay_, updates_ - *me.view);
      ++updates_;
      ++me.steps;
    }
    me.view.reset();
    return counted;
  }

  /// The worker has left, or was lost.
  void drop(std::size_t w) { workers_[w].here = false; }

  /// Steps that the worker is ahead of the slowest live one.
  std::uint64_t lead(std::size_t w, time now) const {
    return workers_[w].steps - std::min(workers_[w].steps, least_of_others(w, now));
  }

  /// When the next worker falls silent if it is not heard of: then ask again who may go on.
  time next_lapse(time now) const noexcept {
    time next = time::max();
    for (worker const& other : workers_)
      if (other.here && !other.waits && now - other.heard < lease_) next = std::min(next, other.heard + lease_);
    return next;
  }

  std::uint64_t updates() const noexcept { return updates_; }  ///< pushes that counted
  std::uint64_t largest_lead() const noexcept { return largest_lead_; }
  std::uint64_t largest_delay() const noexcept { return largest_delay_; }
  std::uint64_t steps(std::size_t w) const noexcept { return workers_[w].steps; }

 private:
  struct worker {
    bool here = true;
    bool waits = false;  // for this side, which is not being silent
    time heard{};
    std::uint64_t steps = 0;
    std::optional<std::uint64_t> view{};  // updates in the parameters that it computes from; none: it must not count
  };
  bool live(worker const& w, time now) const noexcept { return w.here && (w.waits || now - w.heard < lease_); }

  static bool counts(worker const& w) noexcept { return w.view.has_value(); }

  static void rest(worker& w, time now) noexcept {
    w.waits = false;
    w.heard = now;
  }

  /// Steps of the slowest live worker but `w`; `none` if there is no other.
  std::uint64_t least_of_others(std::size_t w, time now) const noexcept {
    std::uint64_t least = staleness_bounds::none;
    for (std::size_t i = 0; i < workers_.size(); ++i)
      if (i != w && live(workers_[i], now)) least = std::min(least, workers_[i].steps);
    return least;
  }

  /// Can the gradients of all live workers but one arrive in time, if `updates` have been made by now? As unit jobs
  /// with deadlines: in the order of their pulls, the k-th finds k updates more.
  bool feasible(std::uint64_t updates, worker const* without, time now) const {
    if (bounds_.delay == staleness_bounds::none) return true;
    std::vector<std::uint64_t> views;
    for (worker const& w : workers_)
      if (&w != without && w.view && live(w, now)) views.push_back(*w.view);
    std::sort(views.begin(), views.end());
    for (std::size_t k = 0; k < views.size(); ++k)
      if (updates + k - views[k] > bounds_.delay) return false;
    return true;
  }

  staleness_bounds bounds_;
  duration lease_;
  std::vector<worker> workers_;
  std::uint64_t updates_ = 0, largest_lead_ = 0, largest_delay_ = 0;
};

}  // namespace rondo::inline v0
