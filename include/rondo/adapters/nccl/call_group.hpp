#pragma once

#include <rondo/adapters/nccl/invocation.hpp>
#include <rondo/adapters/nccl/staged.hpp>
#include <rondo/adapters/nccl/status.hpp>
#include <rondo/work.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace rondo::inline v0::nccl {

inline constexpr char const* unmatched =
    "a rank that sends to itself must receive the same from itself: put both calls into one group";

/// Makes one call, and returns when it is done.
inline void make_alone(invocation call) {
  require(!call.is_local(), ncclInvalidUsage, unmatched);
  try {
    staged const through(call);
    through.wait();
    call.run(call);
    through.give_back();
  } catch (...) {
    call.on->remember(status_of_exception());
    throw;
  }
}

/// Calls that are made together, none of which waits for another: several communicators of one thread, exchanges in
/// which everybody sends and receives.
///
/// Messages start before collectives, whatever the order in which they were written down: ranks need not agree about
/// it. Collectives of one communicator keep theirs.
class concurrent_calls {
 public:
  explicit concurrent_calls(std::vector<invocation> calls) : calls_(std::move(calls)) {
    std::stable_partition(calls_.begin(), calls_.end(), [](invocation const& i) { return i.is_message(); });
  }

  /// Makes them, and returns when all are done: the first error, if there was one.
  status perform() {
    try {
      for (auto& call : calls_) staged_.emplace_back(call);
      for (auto const& s : staged_) s.wait();
      deliver_local_messages();
    } catch (...) { return note(calls_.front(), status_of_exception()); }
    std::vector<work> started(calls_.size());
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (!calls_[i].is_local()) guarded(i, [&] { started[i] = calls_[i].start(calls_[i]); });
    for (std::size_t i = 0; i < calls_.size(); ++i) guarded(i, [&] { started[i].wait(); });
    for (std::size_t i = 0; i < calls_.size(); ++i) guarded(i, [&] { staged_[i].give_back(); });
    return first_;
  }

 private:
  /// What a rank sends to itself goes to its own receives, in the same order.
  void deliver_local_messages() {
    std::deque<invocation const*> receives;
    for (auto const& call : calls_)
      if (call.is_local() && !call.sends) receives.push_back(&call);
    for (auto const& call : calls_) {
      if (!call.is_local() || !call.sends) continue;
      auto const to = std::find_if(receives.begin(), receives.end(), [&](auto const* r) { return r->on == call.on; });
      require(to != receives.end() && (*to)->count == call.count && (*to)->type == call.type, ncclInvalidUsage,
              unmatched);
      if (call.count != 0) std::memmove((*to)->out, call.in, call.reads());
      receives.erase(to);
    }
    require(receives.empty(), ncclInvalidUsage, unmatched);
  }

  template <class F>
  void guarded(std::size_t i, F&& f) {
    try {
      f();
    } catch (...) { note(calls_[i], status_of_exception()); }
  }

  status const& note(invocation const& call, status why) {
    call.on->remember(why);
    if (first_.code == ncclSuccess) first_ = std::move(why);
    return first_;
  }

  std::vector<invocation> calls_;
  std::deque<staged> staged_;
  status first_;
};

/// What the thread has written down between ncclGroupStart and ncclGroupEnd.
class call_group {
 public:
  static call_group& mine() {
    static thread_local call_group one;
    return one;
  }

  void begin() noexcept { ++depth_; }

  /// Makes the call, or writes it down.
  void submit(invocation call) {
    call.check();
    if (depth_ != 0) return calls_.push_back(std::move(call));
    make_alone(std::move(call));
  }

  /// Does what makes a communicator, or writes it down: several that one thread makes wait for each other.
  void set_up(std::function<void()> make) {
    if (depth_ != 0) return setups_.push_back(std::move(make));
    make();
  }

  /// A call of the group was refused: nothing of the group is made.
  void spoil(status const& why) {
    if (depth_ != 0 && spoilt_.code == ncclSuccess) spoilt_ = why;
  }

  /// Says the first error, or throws it.
  status end() {
    require(depth_ != 0, ncclInvalidUsage, "ncclGroupEnd was called without ncclGroupStart: call them in pairs");
    if (--depth_ != 0) return {};
    auto const setups = std::exchange(setups_, {});
    auto calls = std::exchange(calls_, {});
    if (auto why = std::exchange(spoilt_, {}); why.code != ncclSuccess) return why;
    if (auto why = make_all(setups); why.code != ncclSuccess) return why;
    if (calls.size() > 1) return concurrent_calls(std::move(calls)).perform();
    if (calls.size() == 1) make_alone(std::move(calls.front()));
    return {};
  }

 private:
  /// On a thread each, because each waits for the others.
  static status make_all(std::vector<std::function<void()>> const& setups) {
    std::vector<status> outcomes(setups.size());
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 0; i < setups.size(); ++i)
        threads.emplace_back([&, i] {
          try {
            setups[i]();
          } catch (...) { outcomes[i] = status_of_exception(); }
        });
    }
    for (auto const& s : outcomes)
      if (s.code != ncclSuccess) return s;
    return {};
  }

  int depth_ = 0;
  std::vector<std::function<void()>> setups_;
  std::vector<invocation> calls_;
  status spoilt_;
};

}  // namespace rondo::inline v0::nccl
