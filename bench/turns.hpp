#pragma once

#include <cstddef>
#include <vector>

namespace rondo::bench {

/// Cores whose flags take longer for a round trip than this many nanoseconds are apart: everything that they share is
/// several times slower then. The host of a virtual machine moves them from one to the other, at times within a second.
inline constexpr double near_ns = 200;

/// Rounds in which everything that is compared is measured for a while, and the round trip of a flag around each.
class turns {
 public:
  /// `wanted` turns with the cores near; `ever_near`: this machine's are at times.
  turns(int wanted, bool ever_near) : wanted_(wanted), ever_near_(ever_near) {}

  /// Ends a turn, with the longer of the round trips before and after it.
  void add(double flag_ns);

  /// As many as wanted found the cores near, or three times as many were in vain, or the cores never are near.
  bool enough() const;

  /// The turns that count: those that found the cores near, if there are at least three, else all.
  std::vector<std::size_t> counted() const;

  std::size_t size() const { return flag_ns_.size(); }
  bool ever_near() const { return ever_near_; }

  /// Median round trip of a flag in the turns that count.
  double flag_ns() const;

 private:
  int wanted_;
  bool ever_near_;
  std::vector<double> flag_ns_;
};

}  // namespace rondo::bench
