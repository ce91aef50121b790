#pragma once

#include <rondo/run/buffer.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace rondo::inline v0::run {

/// Folds the contributions of all ranks at once, in the canonical tree (see recursive_doubling), a block after the
/// other so that partial sums stay in the nearest cache.
class canonical_fold {
 public:
  /// Elements per block of partial sums.
  static constexpr std::size_t block_bytes = std::size_t{8} << 10;

  explicit canonical_fold(arithmetic const& math) : math_(math) {}

  std::size_t block() const noexcept { return std::max<std::size_t>(1, block_bytes / math_.element); }

  /// The fold of `sources`, in the order of ranks, at `out`, which may be one of them. `count` is at most block().
  void operator()(std::span<std::byte const* const> sources, std::byte* out, std::size_t count) {
    std::size_t const bytes = count * math_.element;
    if (sources.size() == 2) {
      math_.fold(math_.op, out, sources[0], sources[1], count);
    } else {
      partial_.resize(static_cast<std::size_t>(std::bit_width(sources.size())) * bytes);
      std::byte const* const sum = evaluate(sources, partial_.data(), bytes, count);
      std::memcpy(out, sum, bytes);
    }
    if (math_.finish) math_.finish(math_.context, out, count);
  }

 private:
  /// Where the fold lies: at `place`, or a single source itself. What lies from place + bytes on is free.
  std::byte const* evaluate(std::span<std::byte const* const> sources, std::byte* place, std::size_t bytes,
                            std::size_t count) const {
    if (sources.size() == 1) return sources.front();
    std::size_t const half = std::bit_ceil(sources.size()) / 2;
    std::byte const* const left = evaluate(sources.first(half), place, bytes, count);
    std::byte const* const right = evaluate(sources.subspan(half), place + bytes, bytes, count);
    math_.fold(math_.op, place, left, right, count);
    return place;
  }

  arithmetic math_;
  std::vector<std::byte> partial_;
};

}  // namespace rondo::inline v0::run
