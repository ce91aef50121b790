#pragma once

#include <rondo/run/marks.hpp>
#include <rondo/run/owned_work.hpp>

#include <cstddef>
#include <cstring>
#include <span>

namespace rondo::inline v0::run {

/// What an owner does for one block of its elements.
class owners_block {
 public:
  owners_block(owned_work const& work, workspace& memory) : work_(work), memory_(memory) {
    std::size_t const least = work.scratch + (work.to_all ? work.block * work.result : 0);
    if (memory_.block.size() < least) memory_.block.resize(least);
  }

  /// Makes elements at, at + 1, … from what memory.sources says; stores them at all `outs`, or at home if they are only
  /// for the owner.
  ///
  /// Those for all are made in this core's cache and stored afterwards, for the reason that canonical_fold gives.
  void make(std::size_t at, std::size_t count, std::span<std::byte* const> outs) {
    std::byte* const scratch = memory_.block.data();
    std::byte* const results = work_.to_all ? scratch + work_.scratch : work_.home + at * work_.result;
    work_.make(work_, memory_.sources, at, count, results, scratch);
    if (work_.to_all)
      for (std::byte* const out : outs) std::memcpy(out, results, count * work_.result);
  }

 private:
  owned_work const& work_;
  workspace& memory_;
};

}  // namespace rondo::inline v0::run
