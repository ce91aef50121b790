#pragma once

#include <rondo/detail/byte_ring.hpp>
#include <rondo/detail/file_descriptor.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rondo::inline v0::detail {

/// A bell in shared memory by which others wake a sleeping rank, across processes.
///
/// The ringer pays one load of a shared line. That a ring is never missed is left to the sleeper: it announces itself,
/// makes every other core pass a barrier (membarrier), and only then looks at its streams for the last time. It sleeps
/// either here or in poll(2), by an eventfd that the ringer knows.
class bell {
 public:
  /// Must have been called in a process before it rings or sleeps.
  static bool prepare() noexcept {
    static bool const ready = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
    return ready;
  }

  /// `waker` is the eventfd of the sleeper.
  void ring(file_descriptor const& waker) noexcept {
    if (sleeping_.load(std::memory_order_relaxed) == nowhere) return;
    switch (sleeping_.exchange(nowhere, std::memory_order_relaxed)) {
      case here:
        rung_.fetch_add(1, std::memory_order_release);
        ::syscall(SYS_futex, &rung_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
        return;
      case in_poll: ::eventfd_write(waker.get(), 1); return;
      default: return;  // another rank was faster
    }
  }

  /// Sleeps until the bell rings or `patience` is over, unless `stirred()` says that something has happened already.
  template <class Stirred>
  void sleep(std::chrono::nanoseconds patience, Stirred&& stirred) noexcept {
    std::uint32_t const before = rung_.load(std::memory_order_acquire);
    patience = std::min(patience, announce(here));
    if (!stirred()) {
      auto const seconds = std::chrono::duration_cast<std::chrono::seconds>(patience);
      std::timespec const limit{static_cast<std::time_t>(seconds.count()),
                                static_cast<long>((patience - seconds).count())};
      ::syscall(SYS_futex, &rung_, FUTEX_WAIT, before, &limit, nullptr, 0);
    }
    sleeping_.store(nowhere, std::memory_order_relaxed);
  }

  /// Asks ringers for the eventfd, until get_up(). Returns how long to poll it at most: zero if `stirred()`.
  template <class Stirred>
  std::chrono::nanoseconds lie_down(Stirred&& stirred) noexcept {
    auto const limit = announce(in_poll);
    return stirred() ? std::chrono::nanoseconds(0) : limit;
  }
  void get_up() noexcept { sleeping_.store(nowhere, std::memory_order_relaxed); }

 private:
  enum place : std::uint32_t { nowhere, here, in_poll };

  static constexpr std::chrono::milliseconds without_barrier{1};  // a ring may be missed then: look again soon

  /// Returns how long the next sleep may last.
  std::chrono::nanoseconds announce(place where) noexcept {
    sleeping_.store(where, std::memory_order_seq_cst);
    bool const safe = prepare() && ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
    return safe ? std::chrono::nanoseconds::max() : without_barrier;
  }

  alignas(line_pair) std::atomic<std::uint32_t> sleeping_{nowhere};
  std::atomic<std::uint32_t> rung_{0};
};

}  // namespace rondo::inline v0::detail
