#pragma once

#include <rondo/error.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::inline v0 {

/// The control plane of a set of ranks: who is there, small blobs for wiring transports up, and one verdict on failure.
///
/// A transport moves the data; a group never does. The first failure that any rank reports becomes the verdict of all
/// ranks: failed() turns true on each of them within a second, and verdict() is the same everywhere. Waiting code only
/// polls the flag; a group keeps its own watch over its peers and needs no call to notice that one died.
class group {
 public:
  using clock = std::chrono::steady_clock;

  virtual ~group() = default;
  group(group const&) = delete;
  group& operator=(group const&) = delete;

  rank_t rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  /// Gives every rank the blobs of all, by rank. Every rank must call, in the same order; blocks until all have, throws
  /// connect_error naming the missing ranks when the deadline passes, or what the verdict says.
  virtual std::vector<std::string> exchange(std::string_view mine, clock::time_point deadline) = 0;

  /// The ranks that call with the same color >= 0, ordered by (key, rank), as a group of their own; nullptr for a
  /// negative color. Every rank must call. The new group outlives this one.
  virtual std::shared_ptr<group> split(int color, int key, clock::time_point deadline) = 0;

  /// Tells every rank that the group is unusable. The first report wins; the reporter adopts the verdict that won.
  /// For a deadline the group first finds out which rank does not answer or has not entered the call, and names that
  /// one. Returns when the verdict is known here, at most about a second later.
  virtual void report(failure why) noexcept = 0;

  /// If `rank` is known to have left in good order: the number of the last collective that it had finished. It sends
  /// nothing more, and takes part in no later one.
  virtual std::optional<std::uint64_t> departed(rank_t rank) const noexcept = 0;

  /// True once a verdict is known here. One relaxed load, for spinning.
  bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

  /// The verdict; kind::none before failed().
  failure verdict() const {
    std::scoped_lock const lock(mutex_);
    return verdict_;
  }

  /// Marks that this rank has entered, respectively finished, its collective number `sequence` (from 1). Shown to
  /// others when a deadline is diagnosed.
  void entered(std::uint64_t sequence) noexcept { entered_.store(sequence, std::memory_order_relaxed); }
  void finished(std::uint64_t sequence) noexcept { finished_.store(sequence, std::memory_order_relaxed); }

 protected:
  group(rank_t rank, int size) noexcept : rank_(rank), size_(size) {}

  /// Adopts the verdict unless there is one.
  void fail(failure why) noexcept {
    std::scoped_lock const lock(mutex_);
    if (verdict_.why != failure::kind::none) return;
    verdict_ = std::move(why);
    failed_.store(true, std::memory_order_release);
  }

  std::uint64_t entered() const noexcept { return entered_.load(std::memory_order_relaxed); }
  std::uint64_t finished() const noexcept { return finished_.load(std::memory_order_relaxed); }

 private:
  rank_t rank_;
  int size_;
  mutable std::mutex mutex_;
  failure verdict_;
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> entered_{0}, finished_{0};
};

}  // namespace rondo::inline v0
