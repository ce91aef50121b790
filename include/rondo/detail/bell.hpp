#pragma once

#include <rondo/detail/byte_ring.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rondo::inline v0::detail {

/// A bell in shared memory by which others wake a sleeping rank, across processes.
///
/// The ringer pays one load of a shared line. That a ring is never missed is left to the sleeper: it announces itself,
/// makes every other core pass a barrier (membarrier), and only then looks at its streams for the last time.
class bell {
 public:
  /// Must have been called in a process before it rings or sleeps.
  static bool prepare() noexcept {
    static bool const ready = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
    return ready;
  }

  void ring() noexcept {
    if (sleeping_.load(std::memory_order_relaxed) == 0) return;
    sleeping_.store(0, std::memory_order_relaxed);
    rung_.fetch_add(1, std::memory_order_release);
    ::syscall(SYS_futex, &rung_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }

  /// Sleeps until the bell rings or `patience` is over, unless `stirred()` says that something has happened already.
  template <class Stirred>
  void sleep(std::chrono::nanoseconds patience, Stirred&& stirred) noexcept {
    std::uint32_t const before = rung_.load(std::memory_order_acquire);
    sleeping_.store(1, std::memory_order_seq_cst);
    if (!prepare() || ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) != 0)
      patience = std::min<std::chrono::nanoseconds>(patience, without_barrier);
    if (!stirred()) {
      auto const seconds = std::chrono::duration_cast<std::chrono::seconds>(patience);
      std::timespec const limit{static_cast<std::time_t>(seconds.count()),
                                static_cast<long>((patience - seconds).count())};
      ::syscall(SYS_futex, &rung_, FUTEX_WAIT, before, &limit, nullptr, 0);
    }
    sleeping_.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr std::chrono::milliseconds without_barrier{1};  // a ring may be missed then: look again soon

  alignas(line_pair) std::atomic<std::uint32_t> sleeping_{0};
  std::atomic<std::uint32_t> rung_{0};
};

}  // namespace rondo::inline v0::detail
