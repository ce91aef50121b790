#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/detail/prefetch.hpp>
#include <rondo/memory.hpp>
#include <rondo/run/boards.hpp>
#include <rondo/run/canonical_fold.hpp>
#include <rondo/run/job.hpp>
#include <rondo/run/marks.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rondo::inline v0::run {

/// The contributions to one call that travel with its letters: in the text, else in the slot beside it.
class enclosures {
 public:
  enclosures(boards const& shared, std::uint64_t call, job const& work) noexcept
      : shared_(shared), work_(work), call_(call), bytes_(work.count * work.math.element) {}

  /// Encloses what this rank contributes to the letter for `q`.
  void put(rank_t q, letter& l) const noexcept {
    if (bytes_ != 0) std::memcpy(in_text() ? l.text.data() : shared_.slot_to(q, call_), work_.source, bytes_);
  }

  /// Takes the lines that another call of this size would write back from their readers.
  void expect_another() const noexcept {
    for (rank_t q = 0; q < shared_.size(); ++q)
      if (q != shared_.rank() && !in_text()) detail::prefetch_to_write(shared_.slot_to(q, call_ + 1), bytes_);
  }

  /// Makes the result of what all have enclosed; all letters are here.
  void fold(workspace& memory) const {
    for (rank_t q = 0; q < shared_.size(); ++q)
      detail::by_rank(memory.sources, q) = q == shared_.rank() ? work_.source
                                           : in_text()         ? shared_.letter_from(q, call_).text.data()
                                                               : shared_.slot_from(q, call_);
    canonical_fold(work_.math, memory.block)(memory.sources, {&work_.home, 1}, work_.count);
  }

 private:
  bool in_text() const noexcept { return bytes_ <= sizeof(letter::text); }

  boards const& shared_;
  job const& work_;
  std::uint64_t call_;
  std::size_t bytes_;
};

}  // namespace rondo::inline v0::run
