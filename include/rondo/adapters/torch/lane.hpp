#pragma once

#include <rondo/transports/bootstrap/wakeup.hpp>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace rondo::inline v0::detail {

/// Jobs that run one after the other, in the order in which they came, on a thread of their own. They throw nothing.
class lane {
 public:
  using job = std::function<void()>;

  lane() : state_(std::make_shared<state>()) {
    thread_ = quiet_thread([kept = state_] {
      current() = kept.get();
      kept->run();
    });
  }

  /// Runs what has come so far.
  ~lane() {
    {
      std::scoped_lock const lock(state_->mutex);
      state_->closing = true;
    }
    state_->changed.notify_one();
    if (current() == state_.get()) {  // a job destroys its own lane
      while (state_->run_next()) {}
      thread_.detach();
    } else {
      thread_.join();
    }
  }

  void push(job j) {
    {
      std::scoped_lock const lock(state_->mutex);
      state_->queue.push_back(std::move(j));
    }
    state_->changed.notify_one();
  }

  /// To be called before a wait. On the thread of a lane, where later jobs cannot run while one waits for them, runs
  /// them here until done() is true or none is left; elsewhere nothing.
  template <class Done>
  static void make_way(Done const& done) {
    if (auto* const here = current())
      while (!done() && here->run_next()) {}
  }

 private:
  struct state {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<job> queue;
    bool closing = false;

    void run() {
      for (;;) {
        {
          std::unique_lock lock(mutex);
          changed.wait(lock, [this] { return closing || !queue.empty(); });
          if (queue.empty()) return;
        }
        run_next();
      }
    }

    /// Runs the first job, if there is one.
    bool run_next() {
      job next;
      {
        std::scoped_lock const lock(mutex);
        if (queue.empty()) return false;
        next = std::move(queue.front());
        queue.pop_front();
      }
      next();
      return true;
    }
  };

  /// The lane whose thread this is, or nullptr.
  static state*& current() noexcept {
    thread_local state* of_this_thread = nullptr;
    return of_this_thread;
  }

  std::shared_ptr<state> state_;
  std::thread thread_;
};

}  // namespace rondo::inline v0::detail
