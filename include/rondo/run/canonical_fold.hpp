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
  explicit canonical_fold(arithmetic const& math) : math_(math) {}

  /// Elements that callers should fold in one go if they touch the result again: what the nearest cache holds.
  std::size_t block() const noexcept { return std::max<std::size_t>(1, block_bytes / math_.element); }

  /// The fold of `sources`, in the order of ranks, at all `outs`. Each out is one of the sources or overlaps none; each
  /// source is read once, before anything is written over it.
  void operator()(std::span<std::byte const* const> sources, std::span<std::byte* const> outs, std::size_t count) {
    if (!math_.finish) return math_.fold_many(math_.op, outs, sources, count);
    from_.resize(sources.size());
    for (std::size_t first = 0; first < count; first += block()) {
      std::size_t const n = std::min(block(), count - first), at = first * math_.element;
      for (std::size_t i = 0; i < sources.size(); ++i) from_[i] = sources[i] + at;
      std::byte* const out = outs[0] + at;
      math_.fold_many(math_.op, {&out, 1}, from_, n);
      math_.finish(math_.context, out, n);
      for (std::byte* const copy : outs.subspan(1)) std::memcpy(copy + at, out, n * math_.element);
    }
  }

  void operator()(std::span<std::byte const* const> sources, std::byte* out, std::size_t count) {
    (*this)(sources, std::span<std::byte* const>(&out, 1), count);
  }

 private:
  static constexpr std::size_t block_bytes = std::size_t{8} << 10;

  arithmetic math_;
  std::vector<std::byte const*> from_;
};

}  // namespace rondo::inline v0::run
