#pragma once

#include <rondo/gradient/bucket.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// Handles the buckets of a plan on a thread of its own, in their order, each once all of its tensors are ready.
class bucket_thread {
 public:
  using clock = std::chrono::steady_clock;

  struct interval {
    clock::time_point begin, end;
  };

  /// `handle(bucket)` returns when the bucket has been dealt with, and what part of that was communication.
  bucket_thread(bucket_plan const& plan, std::function<interval(std::size_t)> handle)
      : plan_(plan), handle_(std::move(handle)), pending_(new std::atomic<std::size_t>[plan.buckets().size()]),
        ready_(new std::atomic<bool>[tensors()]), busy_(plan.buckets().size()), next_(busy_.size()) {}

  /// Waits for the bucket that is being handled.
  ~bucket_thread() {
    {
      std::scoped_lock const lock(mutex_);
      leaving_ = true;
    }
    news_.notify_all();
  }

  bucket_thread(bucket_thread const&) = delete;
  bucket_thread& operator=(bucket_thread const&) = delete;

  /// Nothing is ready any more. `held`: no bucket is begun before release().
  void open(bool held) {
    for (std::size_t b = 0; b < busy_.size(); ++b)
      pending_[b].store(plan_.buckets()[b].slots.size(), std::memory_order_relaxed);
    for (std::size_t id = 0, n = tensors(); id < n; ++id) ready_[id].store(false, std::memory_order_relaxed);
    left_.store(tensors(), std::memory_order_relaxed);
    std::scoped_lock const lock(mutex_);
    next_ = 0;
    held_ = held;
    if (!thread_.joinable()) thread_ = std::jthread([this] { work(); });
  }

  /// Marks the tensor as being dealt with; false if it already was. From any thread.
  bool claim(std::size_t id) noexcept { return !ready_[id].exchange(true, std::memory_order_relaxed); }

  /// A tensor that was claimed is in its place. From any thread.
  void deliver(std::size_t id) {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) complete_ = clock::now();
    if (pending_[plan_.of(id).bucket].fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    std::scoped_lock const lock(mutex_);  // between the look and the sleep of the other thread there is no gap then
    news_.notify_all();
  }

  void release() {
    std::scoped_lock const lock(mutex_);
    held_ = false;
    news_.notify_all();
  }

  /// Blocks until the bucket has been handled; throws what that has thrown.
  void wait(std::size_t b) {
    std::unique_lock lock(mutex_);
    news_.wait(lock, [&] { return next_ > b || error_; });
    if (next_ <= b) std::rethrow_exception(error_);
  }

  /// When the last tensor was delivered; valid for whoever handles the last bucket, and after that.
  clock::time_point complete() const noexcept { return complete_; }

  /// When a bucket was handled; valid after wait().
  interval busy(std::size_t b) const noexcept { return busy_[b]; }

 private:
  std::size_t tensors() const noexcept {
    std::size_t n = 0;
    for (bucket const& b : plan_.buckets()) n += b.slots.size();
    return n;
  }

  bool may_begin() const noexcept {
    return !error_ && !held_ && next_ < busy_.size() && pending_[next_].load(std::memory_order_acquire) == 0;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      news_.wait(lock, [&] { return leaving_ || may_begin(); });
      if (leaving_) return;
      std::size_t const b = next_;
      lock.unlock();
      std::exception_ptr error;
      interval busy{};
      try {
        busy = handle_(b);
      } catch (...) { error = std::current_exception(); }
      lock.lock();
      busy_[b] = busy;
      if (error)
        error_ = error;
      else
        ++next_;
      news_.notify_all();
    }
  }

  bucket_plan const& plan_;
  std::function<interval(std::size_t)> handle_;
  std::unique_ptr<std::atomic<std::size_t>[]> pending_;  // tensors of a bucket that are not delivered
  std::unique_ptr<std::atomic<bool>[]> ready_;           // by parameter
  std::atomic<std::size_t> left_{0};
  clock::time_point complete_;

  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<interval> busy_;
  std::size_t next_;  // the bucket to handle, or the one that is being handled
  bool held_ = false, leaving_ = false;
  std::exception_ptr error_;
  std::jthread thread_;
};

}  // namespace rondo::inline v0::detail
