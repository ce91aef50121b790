#pragma once

#include <rondo/run/buffer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace rondo::inline v0::run {

/// Folds the contributions of all ranks at once, in the canonical tree (see recursive_doubling), and finishes the
/// result.
class canonical_fold {
 public:
  /// `memory` is scratch, this object's alone during a call.
  canonical_fold(arithmetic const& math, std::vector<std::byte>& memory) : math_(math), memory_(memory) {
    if (std::size_t const least = std::max(block_bytes, math.element); memory_.size() < least) memory_.resize(least);
  }

  /// The fold of `sources`, in the order of ranks, at all `outs`, of which this rank's is the first; each of these is
  /// one of the sources or overlaps none. `sources` is used up.
  ///
  /// A block is folded into memory that is in this core's cache, and only then stored. Stores that go out between the
  /// loads, to lines of another core or to the same place in another page, hold the loads up: four times as long. Where
  /// this rank's out is also a source, the loads have just brought its lines, so the fold goes there at once.
  void operator()(std::span<std::byte const*> sources, std::span<std::byte* const> outs, std::size_t count) {
    bool const in_place = std::find(sources.begin(), sources.end(), outs.front()) != sources.end();
    std::size_t const step =
        count * math_.element <= block_bytes ? count : std::max<std::size_t>(1, block_bytes / math_.element);
    for (std::size_t first = 0; first < count; first += step) {
      std::size_t const n = std::min(step, count - first), bytes = n * math_.element, at = first * math_.element;
      std::byte* const block = in_place ? outs.front() + at : memory_.data();
      math_.fold_many(math_.op, std::span<std::byte* const>(&block, 1), sources, n);
      if (math_.finish) math_.finish(math_.context, block, n);
      for (std::byte* const out : outs.subspan(in_place ? 1 : 0)) std::memcpy(out + at, block, bytes);
      if (first + n == count) break;
      for (auto& source : sources) source += bytes;
    }
  }

 private:
  static constexpr std::size_t block_bytes = std::size_t{4} << 10;

  arithmetic const& math_;
  std::vector<std::byte>& memory_;
};

}  // namespace rondo::inline v0::run
