#pragma once

#include <rondo/detail/fold_kernel.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>

namespace rondo::inline v0::detail {

/// The canonical fold (see recursive_doubling) of any number of sources, a block after the other, so that the partial
/// results of more sources than one pass takes stay in the nearest cache.
template <class T, class Op>
class fold_tree {
 public:
  fold_tree(instruction_set set, Op const& op) noexcept : set_(set), op_(op) {}

  /// Writes `count` elements to all outs. An out is one of the sources or overlaps none.
  void operator()(std::span<std::byte* const> outs, std::span<std::byte const* const> sources,
                  std::size_t count) noexcept {
    std::size_t const bytes = count * sizeof(T);
    std::size_t const step = sources.size() <= widest && outs.size() == 1 ? bytes : step_bytes;
    for (std::size_t at = 0; at < bytes; at += step) {
      std::size_t const n = std::min(step, bytes - at);
      fold(outs[0] + at, sources, at, n, partial_.data());
      for (std::byte* const out : outs.subspan(1)) std::memcpy(out + at, outs[0] + at, n);
    }
  }

 private:
  using pointers = std::span<std::byte const* const>;

  static constexpr bool in_lanes = folds_in_lanes<T, Op>;
  static constexpr std::size_t widest = in_lanes ? fan_in<T, Op> : static_cast<std::size_t>(-1);
  static constexpr std::size_t step_bytes = std::max<std::size_t>(1, 1024 / sizeof(T)) * sizeof(T);
  static constexpr std::size_t depth = 32;  // of a tree of more ranks than there can be

  /// out = the fold of `bytes` from `at` on. What lies from `free` on may be overwritten.
  void fold(std::byte* out, pointers sources, std::size_t at, std::size_t bytes, std::byte* free) const noexcept {
    if (sources.size() == 1) return static_cast<void>(std::memmove(out, sources[0] + at, bytes));
    std::size_t done = 0;
    if constexpr (in_lanes) {
      if (sources.size() > widest) {
        std::size_t const half = std::bit_ceil(sources.size()) / 2;
        std::byte const* const halves[] = {place(sources.first(half), at, bytes, free),
                                           place(sources.subspan(half), at, bytes, free + step_bytes)};
        return fold(out, halves, 0, bytes, nullptr);
      }
      std::byte const* from[widest] = {};
      for (std::size_t i = 0; i < sources.size(); ++i) from[i] = sources[i] + at;
      if (sources.size() == 2) done = fold_lanes_with<T, 2>(set_, op_, out, from, bytes);
      if constexpr (widest > 2) {
        if (sources.size() == 3) done = fold_lanes_with<T, 3>(set_, op_, out, from, bytes);
        if (sources.size() == 4) done = fold_lanes_with<T, 4>(set_, op_, out, from, bytes);
      }
    }
    for (; done < bytes; done += sizeof(T)) store(out + done, element(sources, at + done));
  }

  /// Where the fold lies: at `free`, or a single source itself.
  std::byte const* place(pointers sources, std::size_t at, std::size_t bytes, std::byte* free) const noexcept {
    if (sources.size() == 1) return sources[0] + at;
    fold(free, sources, at, bytes, free);
    return free;
  }

  T element(pointers sources, std::size_t at) const noexcept {
    if (sources.size() == 1) return load<T>(sources[0] + at);
    std::size_t const half = std::bit_ceil(sources.size()) / 2;
    return combine(op_, element(sources.first(half), at), element(sources.subspan(half), at));
  }

  instruction_set set_;
  Op const& op_;
  std::array<std::byte, in_lanes ? depth * step_bytes : 1> partial_;
};

}  // namespace rondo::inline v0::detail
