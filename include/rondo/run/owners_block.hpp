#pragma once

#include <rondo/detail/stream_copy.hpp>
#include <rondo/run/marks.hpp>
#include <rondo/run/owned_work.hpp>

#include <cstddef>
#include <cstring>
#include <span>

namespace rondo::inline v0::run {

/// What an owner does for one block of its elements.
class owners_block {
 public:
  /// `in_place`: what is stored is where it belongs, and so past the caches if it is more than they hold.
  owners_block(owned_work const& work, workspace& memory, bool in_place)
      : work_(work), memory_(memory), past_caches_(in_place && work.first.back() * work.result > cached_bytes) {
    std::size_t const least = work.scratch + work.block * work.result;
    if (memory_.block.size() < least) memory_.block.resize(least);
  }

  /// Makes elements at, at + 1, … from what memory.sources says; stores them at all `outs`, or at home if they are only
  /// for the owner.
  ///
  /// Those for all are made in this core's cache and stored afterwards, for the reason that canonical_fold gives.
  void make(std::size_t at, std::size_t count, std::span<std::byte* const> outs) {
    std::byte* const scratch = memory_.block.data();
    std::byte* const home = work_.home + at * work_.result;
    std::byte* const results = work_.to_all || past_caches_ ? scratch + work_.scratch : home;
    work_.make(work_, memory_.sources, at, count, results, scratch);
    if (work_.to_all)
      for (std::byte* const out : outs) copy(out, results, count);
    else if (past_caches_)
      copy(home, results, count);
  }

  /// To be called before others are told that all is made.
  void finish() const noexcept {
    if (past_caches_) detail::finish_stream_copies();
  }

 private:
  static constexpr std::size_t cached_bytes = std::size_t{32} << 20;

  void copy(std::byte* to, std::byte const* from, std::size_t count) const noexcept {
    if (past_caches_)
      detail::stream_copy(to, from, count * work_.result);
    else
      std::memcpy(to, from, count * work_.result);
  }

  owned_work const& work_;
  workspace& memory_;
  bool past_caches_;
};

}  // namespace rondo::inline v0::run
