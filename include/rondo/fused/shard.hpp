#pragma once

#include <rondo/config.hpp>
#include <rondo/types.hpp>

#include <cstddef>
#include <vector>

namespace rondo::inline v0 {

/// The elements of a buffer that one rank owns.
struct shard {
  std::size_t first = 0, count = 0;

  friend bool operator==(shard const&, shard const&) = default;
};

/// Cuts `count` elements into a run for each of `ranks`, in their order: as even as runs that begin at multiples of 64
/// elements can be, which is a cache line of bytes at least.
RONDO_HD constexpr shard shard_of(std::size_t count, rank_t rank, int ranks) noexcept {
  constexpr std::size_t grain = 64;
  std::size_t const grains = (count + grain - 1) / grain, n = static_cast<std::size_t>(ranks);
  std::size_t const r = static_cast<std::size_t>(rank);
  std::size_t const first = grains * r / n * grain, last = grains * (r + 1) / n * grain;
  return {first < count ? first : count, (last < count ? last : count) - (first < count ? first : count)};
}

/// How many elements each rank owns: the counts of reduce_scatter_v and all_gather_v.
inline std::vector<std::size_t> shard_counts(std::size_t count, int ranks) {
  std::vector<std::size_t> counts;
  for (rank_t r = 0; r < ranks; ++r) counts.push_back(shard_of(count, r, ranks).count);
  return counts;
}

}  // namespace rondo::inline v0
