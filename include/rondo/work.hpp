#pragma once

#include <rondo/run/flight.hpp>
#include <rondo/run/job.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

namespace rondo::inline v0 {

namespace run {

/// An asynchronous call: its job, its flight, and a way to wait for it.
struct pending {
  job work;
  std::shared_ptr<void const> schedule;  ///< that the flight refers to, if it was chosen at run time
  std::unique_ptr<flight_base> flight;
  std::function<bool(flight_base const&, group::clock::time_point)> wait;  ///< keeps the engine alive
};

}  // namespace run

/// Handle of an asynchronous call.
///
/// The buffers of the call belong to it until wait() or test() says that it has finished. Dropping the handle waits for
/// the call, at most until its deadline, so that its buffers may go afterwards. A default-made handle has finished.
class [[nodiscard]] work {
 public:
  work() = default;
  explicit work(std::unique_ptr<run::pending> call) noexcept : call_(std::move(call)) {}
  work(work&&) noexcept = default;
  work& operator=(work&& other) noexcept {
    settle();
    call_ = std::move(other.call_);
    return *this;
  }
  ~work() { settle(); }

  /// Blocks until the call has finished; throws its error.
  void wait() {
    if (!call_) return;
    call_->wait(*call_->flight, group::clock::time_point::max());
    auto const done = std::move(call_);
    if (done->flight->error) std::rethrow_exception(done->flight->error);
  }

  /// Blocks until the call has finished, at most for `patience`; true if it has. Throws its error.
  bool wait_for(std::chrono::nanoseconds patience) {
    if (call_ && !call_->wait(*call_->flight, group::clock::now() + patience)) return false;
    wait();
    return true;
  }

  /// True if the call has finished; throws its error. Never blocks.
  bool test() {
    if (call_ && !call_->flight->settled.load(std::memory_order_acquire)) return false;
    wait();
    return true;
  }

 private:
  void settle() noexcept {
    if (call_) call_->wait(*call_->flight, group::clock::time_point::max());
    call_.reset();
  }

  std::unique_ptr<run::pending> call_;
};

}  // namespace rondo::inline v0
