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
template <schedule S, direction Way> class cursor {
public:
  cursor(S s, rank_t rank, int segments) noexcept
      : schedule_(s), rank_(rank), segments_(segments), period_(std::max(1, s.period())) {
    tick_ = -1;
    segment_ = segments;
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
      if (++segment_ > last_segment()) {
        if (++tick_ > long{segments_ - 1} * period_ + schedule_.rounds() - 1) {
          done_ = true;
          return;
        }
        segment_ = first_segment();
      }
      step_ = schedule_.at(rank_, round());
    } while (peer() == nobody);
  }

  int index = 0;          ///< chunks of the message that are done
  std::size_t offset = 0; ///< bytes of the current chunk that are done

private:
  int last_segment() const noexcept {
    return tick_ < 0 ? -1 : static_cast<int>(std::min(long{segments_ - 1}, tick_ / period_));
  }
  int first_segment() const noexcept {
    long const late = tick_ - schedule_.rounds() + 1;
    return late <= 0 ? 0 : static_cast<int>((late + period_ - 1) / period_);
  }

  S schedule_;
  rank_t rank_;
  int segments_;
  int period_;
  long tick_ = 0;
  int segment_ = 0;
  step step_{};
  bool done_ = false;
};

} // namespace rondo::inline v0::run
