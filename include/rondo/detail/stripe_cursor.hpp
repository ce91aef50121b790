#pragma once

#include <cstddef>
#include <limits>

namespace rondo::inline v0::detail {

/// A place in a byte stream that goes through several connections, a stripe through each in turn. Through a single one
/// it goes undivided.
class stripe_cursor {
 public:
  stripe_cursor(std::size_t lanes, std::size_t stripe) noexcept
      : lanes_(lanes), stripe_(lanes > 1 ? stripe : endless), left_(stripe_) {}

  /// The connection whose turn it is.
  std::size_t lane() const noexcept { return lane_; }
  /// Bytes that still go through it.
  std::size_t left() const noexcept { return left_; }

  /// Moves by n <= left() bytes.
  void pass(std::size_t n) noexcept {
    left_ -= n;
    if (left_ != 0) return;
    lane_ = lane_ + 1 == lanes_ ? 0 : lane_ + 1;
    left_ = stripe_;
  }

 private:
  static constexpr std::size_t endless = std::numeric_limits<std::size_t>::max();

  std::size_t lanes_, stripe_, left_;
  std::size_t lane_ = 0;
};

}  // namespace rondo::inline v0::detail
