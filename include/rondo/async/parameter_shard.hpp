#pragma once

#include <rondo/async/staleness.hpp>
#include <rondo/communicator.hpp>
#include <rondo/error.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// How a worker ended.
enum class worker_ending : std::uint8_t {
  left,  ///< in good order
  lost   ///< it died, was cut off, or was silent for longer than the deadline of the communicator
};

/// What a server has seen of one worker.
struct served_worker {
  worker_ending how = worker_ending::left;
  std::string why;            ///< one sentence, if it was lost
  std::uint64_t pulls = 0;    ///< answered
  std::uint64_t updates = 0;  ///< pushes that counted
  std::uint64_t stale = 0;    ///< pushes that came too late and were dropped
};

/// What became of a shard.
struct served_shard {
  std::uint64_t updates = 0;        ///< by all workers
  std::uint64_t largest_lead = 0;   ///< of an answered pull: within staleness_bounds::lead
  std::uint64_t largest_delay = 0;  ///< of a push that counted: within staleness_bounds::delay
  std::vector<served_worker> workers;
};

/// An update rule: rule(values, gradient) moves the values of one shard. Never called twice at a time; may keep state,
/// such as momentum, which then lives with the shard.
template <class Rule, class T>
concept update_rule = std::is_nothrow_invocable_v<Rule&, std::span<T>, std::span<T const>>;

namespace detail {

/// What a worker asks of a server.
struct parameter_request {
  enum class kind : std::uint32_t { pull, push, leave };
  kind what;
};

/// What comes before the values of a shard.
struct parameter_answer {
  std::uint64_t updates, lead;
};

inline constexpr rank_t server_end = 0, worker_end = 1;  // of the communicator that the two share

/// One shard while it is served: a thread for each worker, which sleeps while that says nothing.
template <transport X, class T, class Rule>
class parameter_shard {
 public:
  parameter_shard(std::span<T> values, Rule& rule, std::size_t workers, staleness_bounds bounds,
                  std::chrono::milliseconds lease)
      : values_(values), rule_(rule), ledger_(workers, bounds, std::min(lease, longest_lease), clock::now()),
        seen_(workers) {}

  /// Returns when every worker has left or was lost.
  served_shard serve(std::span<communicator<X>> links) {
    {
      std::vector<std::jthread> threads;
      for (std::size_t w = 0; w < links.size(); ++w)
        threads.emplace_back([this, w, &link = links[w]] { attend(w, link); });
    }
    return {ledger_.updates(), ledger_.largest_lead(), ledger_.largest_delay(), std::move(seen_)};
  }

 private:
  static constexpr std::chrono::milliseconds longest_lease = std::chrono::hours(24 * 365);  // the clock ends later

  using clock = std::chrono::steady_clock;
  using kind = parameter_request::kind;

  void attend(std::size_t w, communicator<X>& link) noexcept {
    try {
      std::vector<T> values(values_.size());  // on their way from or to the worker
      for (std::array<parameter_request, 1> asked;;) {
        link.receive(asked, worker_end);
        if (asked[0].what == kind::leave) break;
        if (asked[0].what == kind::push) link.receive(values, worker_end);
        std::unique_lock lock(mutex_);
        ledger_.hear(w, clock::now());
        changed_.notify_all();  // the worker may have dropped back, or its gradient may no longer count
        if (asked[0].what == kind::push)
          take(w, values, lock);
        else
          answer(w, values, lock, link);
      }
    } catch (std::exception const& e) {
      std::scoped_lock const lock(mutex_);
      seen_[w].how = worker_ending::lost;
      seen_[w].why = e.what();
    }
    std::scoped_lock const lock(mutex_);
    ledger_.drop(w);
    changed_.notify_all();
  }

  void take(std::size_t w, std::span<T const> gradient, std::unique_lock<std::mutex>& lock) {
    sleep(lock, [&](auto now) { return ledger_.may_push(w, now); });
    bool const counts = ledger_.push(w, clock::now());
    if (counts) rule_(values_, gradient);
    ++(counts ? seen_[w].updates : seen_[w].stale);
    changed_.notify_all();
  }

  void answer(std::size_t w, std::span<T> copy, std::unique_lock<std::mutex>& lock, communicator<X>& link) {
    sleep(lock, [&](auto now) { return ledger_.may_pull(w, now); });
    auto const now = clock::now();
    std::array const head{parameter_answer{ledger_.updates(), ledger_.lead(w, now)}};
    ledger_.pull(w, now);
    std::copy(values_.begin(), values_.end(), copy.begin());
    ++seen_[w].pulls;
    lock.unlock();
    link.send(head, worker_end);
    link.send(copy, worker_end);
  }

  /// Until `ready(now)`. Somebody always goes on, leaves, or falls silent within a lease.
  template <class Ready>
  void sleep(std::unique_lock<std::mutex>& lock, Ready&& ready) {
    for (;;) {
      auto const now = clock::now();
      if (ready(now)) return;
      changed_.wait_until(lock, std::min(ledger_.next_lapse(now), now + std::chrono::hours(1)));
    }
  }

  std::span<T> values_;
  Rule& rule_;
  std::mutex mutex_;
  std::condition_variable changed_;
  staleness_ledger ledger_;
  std::vector<served_worker> seen_;
};

}  // namespace detail

}  // namespace rondo::inline v0
