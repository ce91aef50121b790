#pragma once

#include <chrono>
#include <thread>

namespace rondo::inline v0 {

/// Tells the core that this is a spinning loop.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// How a rank waits: it spins for about the time that a wake-up would cost, then lends its core, then sleeps.
///
/// With more ranks than cores spinning only keeps the others from running, so none is done.
class backoff {
 public:
  using clock = std::chrono::steady_clock;

  explicit backoff(bool crowded) noexcept : spins_left_(crowded ? 0 : spins), crowded_(crowded) {}

  /// Call after a fruitless poll. Returns how long the caller may sleep now; zero: poll again at once.
  std::chrono::nanoseconds pause() noexcept {
    if (spins_left_ > 0) {
      --spins_left_;
      relax();
      return {};
    }
    if (yields_left_ > 0) {
      --yields_left_;
      std::this_thread::yield();
      return {};
    }
    return longest_sleep;
  }

  /// Call after a fruitful poll.
  void reset() noexcept {
    spins_left_ = crowded_ ? 0 : spins;
    yields_left_ = yields;
  }

 private:
  static constexpr int spins = 2000;  // some 20-50 us: more than a hop, about what a sleep and a wake-up take
  static constexpr int yields = 50;
  static constexpr std::chrono::milliseconds longest_sleep{50};  // verdicts and deadlines are looked at this often

  int spins_left_;
  int yields_left_ = yields;
  bool crowded_;
};

}  // namespace rondo::inline v0
