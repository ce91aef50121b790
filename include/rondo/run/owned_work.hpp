#pragma once

#include <rondo/types.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace rondo::inline v0::run {

/// A call in which the owner of some elements makes them from what all contribute to them, or from nothing, and keeps
/// them or hands them to all: reduce-scatter with an epilogue, all-gather with a producer. Its types are erased.
struct owned_work {
  std::size_t contribution = 0;  ///< bytes of an element that every rank contributes; 0 if none does
  std::size_t result = 0;        ///< bytes of an element that its owner makes
  bool to_all = false;           ///< results are for all ranks, not only for their owner

  std::byte const* source = nullptr;  ///< what this rank contributes to all elements
  std::byte* home = nullptr;          ///< where its results belong: those of all elements if to_all, else its own

  std::vector<std::size_t> first;  ///< by rank: where its elements begin; one entry more for where the last ones end

  std::size_t block = 1;  ///< elements that are made at a time, at most

  /// Makes the results of `count` <= block elements, from number `at` of the owner's own on, from the
  /// contributions of all ranks to them.
  void (*make)(owned_work const&, std::span<std::byte const*> sources, std::size_t at, std::size_t count,
               std::byte* results, std::byte* scratch) noexcept = nullptr;
  void const* request = nullptr;  ///< for make()
  std::size_t scratch = 0;        ///< bytes that it needs

  std::size_t begin(rank_t owner) const noexcept { return first[static_cast<std::size_t>(owner)]; }
  std::size_t count(rank_t owner) const noexcept { return begin(owner + 1) - begin(owner); }
  std::size_t largest() const noexcept {
    std::size_t most = 0;
    for (std::size_t r = 1; r < first.size(); ++r) most = std::max(most, first[r] - first[r - 1]);
    return most;
  }
};

}  // namespace rondo::inline v0::run
