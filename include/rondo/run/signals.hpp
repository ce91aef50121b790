#pragma once

#include <rondo/memory.hpp>
#include <rondo/run/boards.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rondo::inline v0::run {

/// The flags between one rank and all others: counters of windows that only grow.
template <addressable X>
class signals {
 public:
  signals(X& transport, boards const& shared) noexcept : transport_(transport), shared_(shared) {}

  /// Calls f(rank) for every other rank, beginning with the next, so that not all ranks write to the same one.
  template <class F>
  void each_other(F&& f) const {
    for (rank_t i = 1; i < shared_.size(); ++i) f((shared_.rank() + i) % shared_.size());
  }

  /// Publishes to `q` what was written before.
  void raise(rank_t q, signal what, std::uint64_t value) {
    shared_.to(q).flags[static_cast<std::size_t>(what)].store(value, std::memory_order_release);
    transport_.notify(q);
  }
  void raise(signal what, std::uint64_t value) {
    each_other([&](rank_t q) { raise(q, what, value); });
  }

  /// Have all other ranks raised theirs to `value`? If not, awaited() is one that has not.
  bool raised(signal what, std::uint64_t value) noexcept {
    for (rank_t q = 0; q < shared_.size(); ++q)
      if (q != shared_.rank() &&
          shared_.from(q).flags[static_cast<std::size_t>(what)].load(std::memory_order_acquire) < value) {
        awaited_ = q;
        return false;
      }
    return true;
  }
  rank_t awaited() const noexcept { return awaited_; }

 private:
  X& transport_;
  boards const& shared_;
  rank_t awaited_ = nobody;
};

}  // namespace rondo::inline v0::run
