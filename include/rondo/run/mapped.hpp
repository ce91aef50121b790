#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/run/boards.hpp>
#include <rondo/run/canonical_fold.hpp>
#include <rondo/run/job.hpp>
#include <rondo/run/mapped_buffers.hpp>
#include <rondo/run/marks.hpp>
#include <rondo/run/signals.hpp>
#include <rondo/run/staged.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace rondo::inline v0::run {

/// A two-shot on registered buffers: every rank reads its slice of all sources and writes the fold of it to all homes.
/// Nothing is copied on the way, and a flag per pair of ranks says that a rank is done.
template <addressable X>
class mapped {
 public:
  /// All ranks have entered the call.
  mapped(X& transport, workspace& memory, job& work, window_range const& windows, mapped_buffers buffers)
      : shared_(memory.shared), job_(work), memory_(memory), fold_(work.math, memory.block),
        signals_(transport, memory.shared), end_(windows.base + windows.count), buffers_(std::move(buffers)) {
    auto const ranks = static_cast<std::size_t>(shared_.size()), me = static_cast<std::size_t>(shared_.rank());
    std::size_t const grain = job_.math.grain();
    std::size_t const grains = (job_.count + grain - 1) / grain;
    next_ = std::min(job_.count, grains * me / ranks * grain);
    last_ = std::min(job_.count, grains * (me + 1) / ranks * grain);
  }

  bool done() const noexcept { return done_; }
  rank_t waiting_for() const noexcept { return signals_.awaited(); }

  bool poll() {
    if (!folded_) {
      fold(std::min(last_ - next_, stretch_bytes / job_.math.element + 1));
      if (next_ < last_) return true;
      folded_ = true;
      shared_.free_windows(end_);
      signals_.raise(signal::result, end_);
    }
    if (!signals_.raised(signal::result, end_)) return false;
    done_ = true;
    return true;
  }

 private:
  static constexpr std::size_t stretch_bytes = std::size_t{1} << 20;  // between two looks at the rest of the world

  void fold(std::size_t n) {
    std::size_t const offset = next_ * job_.math.element;
    auto out = memory_.outs.begin();
    *out++ = job_.home + offset;
    for (rank_t q = 0; q < shared_.size(); ++q) {
      detail::by_rank(memory_.sources, q) = buffers_.source(q) + offset;
      if (q != shared_.rank()) *out++ = buffers_.home(q) + offset;
    }
    fold_(memory_.sources, memory_.outs, n);
    next_ += n;
  }

  boards const& shared_;
  job& job_;
  workspace& memory_;
  canonical_fold fold_;
  signals<X> signals_;
  std::uint64_t end_;  // number of the call's last window, which it does not use
  mapped_buffers buffers_;
  std::size_t next_ = 0, last_ = 0;  // elements of this rank's slice that are left
  bool folded_ = false, done_ = false;
};

}  // namespace rondo::inline v0::run
