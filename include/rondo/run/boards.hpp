#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/fingerprint.hpp>
#include <rondo/memory.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace rondo::inline v0::run {

/// Numbers of the flags in a mailbox: contributions of a window are here, its results are here, it was emptied.
enum class signal : std::size_t { arrival, result, credit };

/// The memory that the ranks of a communicator share, as one of them sees it. Nothing, if they share none.
///
/// A board has, for each rank that writes to it: the fingerprints of its last two calls, two slots for the text of
/// letters that is too long for them, and windows. All of them take turns by the numbers of calls and windows, which
/// only grow and are the same on all ranks.
class boards {
 public:
  boards() = default;

  template <addressable X>
  explicit boards(X const& transport)
      : ranks_(static_cast<std::size_t>(transport.size())), rank_(transport.rank()), bytes_(transport.board(0).size()),
        slot_bytes_(std::min<std::size_t>(std::size_t{4} << 10, bytes_ / (8 * ranks_) / 128 * 128)),
        slice_bytes_((bytes_ - windows_at()) / (2 * depth * ranks_) / 64 * 64), registered_(transport.registered()) {
    for (rank_t q = 0; q < transport.size(); ++q) {
      from_.push_back(&transport.mail(rank_, q));
      to_.push_back(&transport.mail(q, rank_));
      boards_.push_back(transport.board(q).data());
    }
  }

  explicit operator bool() const noexcept { return bytes_ != 0; }
  int size() const noexcept { return static_cast<int>(ranks_); }
  rank_t rank() const noexcept { return rank_; }

  /// What `q` has written for this rank, and what this rank writes for `q`.
  mailbox& from(rank_t q) const noexcept { return *detail::by_rank(from_, q); }
  mailbox& to(rank_t q) const noexcept { return *detail::by_rank(to_, q); }

  letter& letter_from(rank_t q, std::uint64_t call) const noexcept { return from(q).letters[call % 2]; }
  letter& letter_to(rank_t q, std::uint64_t call) const noexcept { return to(q).letters[call % 2]; }

  fingerprint& mark_from(rank_t q, std::uint64_t call) const noexcept { return mark(rank_, q, call); }
  fingerprint& mark_to(rank_t q, std::uint64_t call) const noexcept { return mark(q, rank_, call); }

  std::byte* slot_from(rank_t q, std::uint64_t call) const noexcept { return slot(rank_, q, call); }
  std::byte* slot_to(rank_t q, std::uint64_t call) const noexcept { return slot(q, rank_, call); }

  /// Bytes of a slot: as far as a copy costs less than the second hop which it saves.
  std::size_t slot_bytes() const noexcept { return slot_bytes_; }

  /// Windows that are in flight at most. Each has a slice per rank for contributions and one for results.
  static constexpr std::size_t depth = 4;

  /// Bytes of a slice, a multiple of a cache line.
  std::size_t slice_bytes() const noexcept { return slice_bytes_; }

  /// Slice of window `w` on the board of `owner` for what `q` contributes, respectively for the results of `q`; `used`
  /// bytes at most, which are the same for all windows of a call.
  std::byte* contribution(rank_t owner, rank_t q, std::uint64_t w, std::size_t used) const noexcept {
    return slice(owner, q, w % depth) + lap(w, used);
  }
  std::byte* outcome(rank_t owner, rank_t q, std::uint64_t w, std::size_t used) const noexcept {
    return slice(owner, q, depth + w % depth) + lap(w, used);
  }

  /// Tells all ranks that windows up to number `end` are free, though no call went through them.
  void free_windows(std::uint64_t end) const noexcept {
    for (rank_t q = 0; q < size(); ++q)
      if (q != rank_) to(q).flags[static_cast<std::size_t>(signal::credit)].store(end, std::memory_order_release);
  }

  std::shared_ptr<registered_memory> const& registered() const noexcept { return registered_; }

  std::uint64_t calls = 0;    ///< number of the last call over boards
  std::uint64_t windows = 0;  ///< that all calls so far may have used

 private:
  std::byte* at(rank_t owner, std::size_t offset) const noexcept { return detail::by_rank(boards_, owner) + offset; }
  std::size_t turn(rank_t q, std::uint64_t call) const noexcept {
    return call % 2 * ranks_ + static_cast<std::size_t>(q);
  }

  fingerprint& mark(rank_t owner, rank_t q, std::uint64_t call) const noexcept {
    return *reinterpret_cast<fingerprint*>(at(owner, turn(q, call) * sizeof(fingerprint)));
  }

  std::size_t slots_at() const noexcept { return 2 * ranks_ * sizeof(fingerprint); }
  std::byte* slot(rank_t owner, rank_t q, std::uint64_t call) const noexcept {
    return at(owner, slots_at() + turn(q, call) * slot_bytes());
  }

  std::size_t windows_at() const noexcept { return slots_at() + 2 * ranks_ * slot_bytes(); }
  std::byte* slice(rank_t owner, rank_t q, std::size_t place) const noexcept {
    return at(owner, windows_at() + (place * ranks_ + static_cast<std::size_t>(q)) * slice_bytes());
  }

  /// Where small windows begin in a slice: one after the other, so that they use all of it. Lines that another core has
  /// read and since given up cost half of what those cost that are still in its cache.
  std::size_t lap(std::uint64_t w, std::size_t used) const noexcept {
    std::size_t const step = (std::max<std::size_t>(1, used) + 63) / 64 * 64;
    return w / depth % (slice_bytes() / step) * step;
  }

  std::size_t ranks_ = 0;
  rank_t rank_ = 0;
  std::size_t bytes_ = 0, slot_bytes_ = 0, slice_bytes_ = 0;
  std::vector<mailbox*> from_, to_;
  std::vector<std::byte*> boards_;
  std::shared_ptr<registered_memory> registered_;
};

}  // namespace rondo::inline v0::run
