#pragma once

#include <rondo/cuda/block.hpp>
#include <rondo/cuda/board.hpp>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

/// Runs kernels without a GPU: a thread of a block is a thread, and what a context promises is kept with the means of
/// C++. What this shows is the logic and the order of memory accesses, the latter through ThreadSanitizer; what it
/// cannot show is in docs/explanation/cuda.md.
namespace cuda_host {

/// What the threads of a block share.
class block_of_threads {
 public:
  explicit block_of_threads(unsigned threads) : scratch_(rondo::device::scratch_count(threads)), meeting_(threads) {}

  double* scratch() { return scratch_.data(); }
  void meet() { meeting_.arrive_and_wait(); }

  /// No object of a vote is used twice before all have read it: votes take turns.
  bool vote(bool yes, unsigned turn) {
    if (!yes) objections_[turn % 2] = true;
    meet();
    return !objections_[turn % 2];
  }

 private:
  std::vector<double> scratch_;
  std::barrier<> meeting_;
  std::array<std::atomic<bool>, 2> objections_{};
};

/// A thread's view of itself, as kernels want it. With `haste` below 100 threads stop for a moment before some of their
/// flags and after some of their words, so that ranks and blocks run apart.
class context {
 public:
  context(block_of_threads& own, unsigned thread, unsigned threads, unsigned number, unsigned blocks, unsigned seed,
          unsigned haste)
      : own_(own), thread_(thread), threads_(threads), number_(number), blocks_(blocks), random_(seed), haste_(haste) {}

  unsigned thread() const { return thread_; }
  unsigned threads() const { return threads_; }
  unsigned block() const { return number_; }
  unsigned blocks() const { return blocks_; }
  double* scratch() { return own_.scratch(); }

  void sync() { own_.meet(); }
  bool sync_and(bool yes) { return own_.vote(yes, turn_++); }

  template <class F>
  F load_acquire(F& flag) {
    return std::atomic_ref<F>(flag).load(std::memory_order_acquire);
  }
  template <class F>
  void store_release(F& flag, F value) {
    loiter();
    std::atomic_ref<F>(flag).store(value, std::memory_order_release);
  }
  template <class F>
  F load_relaxed(F& flag) {
    return std::atomic_ref<F>(flag).load(std::memory_order_relaxed);
  }
  template <class F>
  void store_relaxed(F& flag, F value) {
    std::atomic_ref<F>(flag).store(value, std::memory_order_relaxed);
    loiter();
  }
  template <class F>
  F exchange(F& flag, F value) {
    return std::atomic_ref<F>(flag).exchange(value, std::memory_order_relaxed);
  }

  template <class F>
  void replace(F& flag, F expected, F value) {
    std::atomic_ref<F>(flag).compare_exchange_strong(expected, value, std::memory_order_relaxed);
  }

  void pause() { std::this_thread::yield(); }
  std::uint64_t nanoseconds() const {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }

 private:
  void loiter() {
    if (random_() % 100 >= haste_) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 100));
  }

  block_of_threads& own_;
  unsigned thread_, threads_, number_, blocks_, turn_ = 0;
  std::minstd_rand random_;
  unsigned haste_;
};

/// How many blocks and threads a rank launches, and how it runs.
struct grid {
  unsigned blocks = 2, threads = 3;
  unsigned haste = 90;
};

/// What a rank launches: kernels, one after the other, each with a grid of its own if it wants to.
struct launch {
  std::function<void(context&)> kernel;
  unsigned blocks = 0;  ///< as the grid, if 0
};

/// Runs the kernels of one rank, as a stream does: none begins before the one before it has ended.
inline void run_rank(grid const& g, std::vector<launch> const& calls, unsigned seed) {
  std::barrier<> between(static_cast<std::ptrdiff_t>(g.blocks * g.threads));
  std::deque<block_of_threads> blocks;
  for (unsigned b = 0; b < g.blocks; ++b) blocks.emplace_back(g.threads);
  std::vector<std::thread> all;
  for (unsigned b = 0; b < g.blocks; ++b)
    for (unsigned t = 0; t < g.threads; ++t)
      all.emplace_back([&, b, t] {
        for (auto const& call : calls) {
          unsigned const launched = call.blocks ? call.blocks : g.blocks;
          if (b < launched) {
            context own(blocks[b], t, g.threads, b, launched, seed * 7919 + b * 101 + t + 1, g.haste);
            call.kernel(own);
          }
          between.arrive_and_wait();
        }
      });
  for (auto& thread : all) thread.join();
}

/// Runs the programs of all ranks at the same time.
inline void run_ranks(grid const& g, std::vector<std::vector<launch>> const& programs) {
  std::vector<std::thread> ranks;
  for (std::size_t r = 0; r < programs.size(); ++r)
    ranks.emplace_back([&, r] { run_rank(g, programs[r], static_cast<unsigned>(r)); });
  for (auto& rank : ranks) rank.join();
}

}  // namespace cuda_host
