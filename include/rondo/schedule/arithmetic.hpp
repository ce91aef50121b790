#pragma once

#include <rondo/types.hpp>

#include <bit>

namespace rondo::inline v0::detail {

/// x modulo n, for x from -n to 2n - 1.
RONDO_HD constexpr int wrap(int x, int n) noexcept { return x < 0 ? x + n : x < n ? x : x - n; }

/// The smallest k with 2^k >= n, for n >= 1.
RONDO_HD constexpr int ceil_log2(int n) noexcept {
  return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1)));
}

/// The round with all arrows turned round. An all-gather that runs backwards in time is a reduce-scatter, and the other
/// way round: where a chunk was handed out, its contributions are collected.
RONDO_HD constexpr step backwards(step const& s, merge how) noexcept { return {s.from, s.in, s.to, s.out, how}; }

}  // namespace rondo::inline v0::detail
