#pragma once

#include <rondo/schedule.hpp>

#include <algorithm>
#include <cstddef>

namespace rondo::inline v0::run {

enum class direction : bool { send, receive };

/// Walks through the messages that a rank sends, or those that it receives, in the order of the global clock.
///
/// The buffer is cut into segments; segment k starts k * period() ticks after the first. At one tick older segments
/// come first. Both ends of a pair of ranks walk through their common messages in the same order, since rounds are
/// global.
template <schedule S, direction Way>
class cursor {
 public:
  cursor(S s, rank_t rank, int segments) noexcept
      : schedule_(s), rank_(rank), segments_(segments), rounds_(s.rounds()), period_(std::max(1, s.period())) {
    next();
  }

  bool done() const noexcept { return done_; }
  long tick() const noexcept { return tick_; }
  int segment() const noexcept { return segment_; }
  int round() const noexcept { return static_cast<int>(tick_ - long{segment_} * period_); }
  step const& now() const noexcept { return step_; }
  rank_t peer() const noexcept { return Way == direction::send ? step_.to : step_.from; }
  slice what() const noexcept { return Way == direction::send ? step_.out : step_.in; }

  /// Number within the schedule of chunk `index` of the message.
  int chunk() const noexcept {
    int const c = what().first + index;
    return c < schedule_.chunks() ? c : c - schedule_.chunks();
  }

  /// True if this cursor's message comes before the given point of the clock, or is exactly there.
  bool reached(long tick, int segment) const noexcept {
    return done_ || tick_ > tick || (tick_ == tick && segment_ >= segment);
  }
  bool passed(long tick, int segment) const noexcept {
    return done_ || tick_ > tick || (tick_ == tick && segment_ > segment);
  }

  /// Goes on to the next message of this rank.
  void next() noexcept {
    index = 0;
    offset = 0;
    do {
      if (++segment_ > newest_) {
        ++tick_;
        if (newest_ + 1 < segments_ && tick_ == start_of(newest_ + 1)) ++newest_;
        if (tick_ == start_of(oldest_) + rounds_ && ++oldest_ == segments_) {
          done_ = true;
          return;
        }
        segment_ = oldest_;
        if (segment_ > newest_) continue;
      }
      step_ = schedule_.at(rank_, round());
    } while (peer() == nobody);
  }

  int index = 0;           ///< chunks of the message that are done
  std::size_t offset = 0;  ///< bytes of the current chunk that are done

 private:
  long start_of(int segment) const noexcept { return long{segment} * period_; }

  S schedule_;
  rank_t rank_;
  int segments_;
  int rounds_;
  int period_;
  int oldest_ = 0, newest_ = -1;  // segments that are under way at this tick
  long tick_ = -1;
  int segment_ = 0;
  step step_{};
  bool done_ = false;
};

}  // namespace rondo::inline v0::run
