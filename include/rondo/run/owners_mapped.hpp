#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/run/boards.hpp>
#include <rondo/run/mapped_buffers.hpp>
#include <rondo/run/marks.hpp>
#include <rondo/run/owners_block.hpp>
#include <rondo/run/signals.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace rondo::inline v0::run {

/// The work of owners on registered buffers: every rank reads the contributions to its elements where they lie, and
/// stores results where they belong, each byte once. A flag per pair of ranks says that a rank is done.
template <addressable X>
class owners_mapped {
 public:
  /// All ranks have entered the call. `end`: number of the call's last window, which it does not use.
  owners_mapped(X& transport, workspace& memory, owned_work const& work, std::uint64_t end, mapped_buffers buffers)
      : shared_(memory.shared), work_(work), memory_(memory), block_(work, memory), signals_(transport, memory.shared),
        end_(end), buffers_(std::move(buffers)) {}

  bool done() const noexcept { return done_; }
  rank_t waiting_for() const noexcept { return signals_.awaited(); }

  bool poll() {
    if (!made_) {
      std::size_t const own = work_.count(shared_.rank());
      for (std::size_t const stop = std::min(own, next_ + stretch); next_ < stop;)
        next_ += make(std::min(stop - next_, work_.block));
      if (next_ < own) return true;
      made_ = true;
      shared_.free_windows(end_);
      signals_.raise(signal::result, end_);
    }
    if (!signals_.raised(signal::result, end_)) return false;
    done_ = true;
    return true;
  }

 private:
  static constexpr std::size_t stretch = std::size_t{256} << 10;  // elements between two looks at the rest of the world

  std::size_t make(std::size_t n) {
    std::size_t const place = work_.begin(shared_.rank()) + next_;
    for (rank_t q = 0; q < shared_.size(); ++q) {
      if (work_.contribution != 0)
        detail::by_rank(memory_.sources, q) = buffers_.source(q) + place * work_.contribution;
      if (work_.to_all) detail::by_rank(memory_.outs, q) = buffers_.home(q) + place * work_.result;
    }
    block_.make(next_, n, memory_.outs);
    return n;
  }

  boards const& shared_;
  owned_work const& work_;
  workspace& memory_;
  owners_block block_;
  signals<X> signals_;
  std::uint64_t end_;
  mapped_buffers buffers_;
  std::size_t next_ = 0;  // of this rank's elements
  bool made_ = false, done_ = false;
};

}  // namespace rondo::inline v0::run
