#pragma once

#include <rondo/types.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace rondo::inline v0::run {

/// Where one chunk of a schedule lives.
///
/// The value that a rank starts with is read from `source`; the first merge moves it to `home`, which may be the same
/// place. A chunk that a rank starts without has any source.
struct chunk {
  std::byte const* source = nullptr;
  std::byte* home = nullptr;
  std::size_t count = 0;  ///< elements
};

/// Do two slices of a buffer of `chunks` chunks share one?
constexpr bool overlap(slice a, slice b, int chunks) noexcept {
  if (a.count == 0 || b.count == 0) return false;
  int const ab = b.first >= a.first ? b.first - a.first : b.first - a.first + chunks;
  int const ba = ab == 0 ? 0 : chunks - ab;
  return ab < a.count || ba < b.count;
}

/// The chunks of a collective call, in the order of the schedule.
using chunk_list = std::vector<chunk>;

/// What the executor does to elements, free of their type.
struct arithmetic {
  std::size_t element = 1;  ///< bytes of one element

  /// Elements in whose multiples buffers are cut: those of a cache line, at least one.
  std::size_t grain() const noexcept { return element < 64 ? 64 / element : 1; }

  /// out[i] = op(a[i], b[i]) for `count` elements of any alignment; `out` may be `a` or `b`. Null for pure movement.
  void (*fold)(void const* op, std::byte* out, std::byte const* a, std::byte const* b, std::size_t count) = nullptr;

  /// The same for any number of sources, in the canonical tree, written to all outs: see reduction. Null where the call
  /// does not fold like that.
  void (*fold_many)(void const* op, std::span<std::byte* const> outs, std::span<std::byte const* const> sources,
                    std::size_t count) noexcept = nullptr;

  void const* op = nullptr;  ///< first argument of both

  /// Applied once to every element that a merge completes. Null for none.
  void (*finish)(void const* context, std::byte* data, std::size_t count) = nullptr;
  void const* context = nullptr;  ///< first argument of finish
};

}  // namespace rondo::inline v0::run
