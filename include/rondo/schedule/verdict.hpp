#pragma once

#include <rondo/types.hpp>

#include <string>

namespace rondo::inline v0 {

/// What a schedule may do wrong. The laws are those of <rondo/schedule.hpp>.
enum class flaw : unsigned char {
  none,
  bad_shape,          ///< ranks, chunks, rounds or period out of range, or chunks no multiple of ranks where blocks are
  idle_not_empty,     ///< law 1: fields are set for a message that there is not
  peer_out_of_range,  ///< law 1
  self_message,       ///< law 1
  slice_out_of_range,
  unmatched_send,     ///< law 1: nobody receives it
  unmatched_receive,  ///< law 1: nobody sends it
  counts_differ,      ///< law 1
  slices_overlap,     ///< law 2
  out_of_order,       ///< law 3: two segments arrive in another order than they were sent
  deadlock,           ///< law 3
  not_forwarded,      ///< law 4: the next round does not send exactly what was not kept
  reads_nothing,      ///< law 4, or a first round that sends what the rank does not have
  completes_wrongly,  ///< law 5: set where the merge completes nothing, or not set where it does
  mixes_chunks,       ///< a fold of different chunks
  counts_twice,       ///< a fold of two sums that share a contribution
  incomplete          ///< the collective ends, and a rank has not what it should have
};

/// What `verify` found. If it converts to false: why, and the first place where.
///
/// The tree facts speak of the sums that the collective delivers. They are true of a collective that folds nothing, and
/// false where they were not computed (a refused schedule, or proof::checksums).
struct verdict {
  flaw why = flaw::none;
  rank_t rank = nobody;
  int round = -1;  ///< -1: none in particular
  int chunk = -1;  ///< -1: none in particular

  bool same_bits = false;         ///< each chunk is the same tree on all ranks, up to the order of the two operands
  bool uniform_tree = false;      ///< ... and the same for all chunks: no element's bits depend on its offset
  bool canonical_tree = false;    ///< ... and that tree is the balanced one over rank order (`ordered`)
  bool keeps_rank_order = false;  ///< operands are joined in the order of the ranks: fit for non-commutative operations

  int needless = 0;  ///< messages that could be left out: what they bring is overwritten, or never asked for

  explicit constexpr operator bool() const noexcept { return why == flaw::none; }

  /// One line for people, such as "rank 3, round 5, chunk 2: folds two sums that share a contribution".
  std::string describe() const {
    std::string text;
    auto const place = [&](char const* name, int value) {
      if (value >= 0) text += (text.empty() ? "" : ", ") + std::string(name) + ' ' + std::to_string(value);
    };
    place("rank", rank);
    place("round", round);
    place("chunk", chunk);
    return text + (text.empty() ? "" : ": ") + sentence();
  }

 private:
  char const* sentence() const noexcept {
    switch (why) {
      case flaw::none: return "correct";
      case flaw::bad_shape: return "ranks(), chunks(), rounds() or period() is out of range for this collective";
      case flaw::idle_not_empty: return "fields are set for a message that there is not";
      case flaw::peer_out_of_range: return "names a peer that does not exist";
      case flaw::self_message: return "sends to itself";
      case flaw::slice_out_of_range: return "names a slice outside the buffer, or an empty one";
      case flaw::unmatched_send: return "sends to a rank that does not receive from it in this round";
      case flaw::unmatched_receive: return "receives from a rank that does not send to it in this round";
      case flaw::counts_differ: return "sends another number of chunks than its peer receives";
      case flaw::slices_overlap: return "sends and receives slices that overlap without being the same";
      case flaw::out_of_order: return "receives overlapping segments in another order than they were sent";
      case flaw::deadlock: return "waits for ever when segments overlap";
      case flaw::not_forwarded: return "does not keep a slice that the next round does not send as it is";
      case flaw::reads_nothing: return "reads a chunk that holds no value";
      case flaw::completes_wrongly: return "`completes` does not say whether this merge makes the slice final";
      case flaw::mixes_chunks: return "folds different chunks into one another";
      case flaw::counts_twice: return "folds two sums that share a contribution";
      case flaw::incomplete: return "does not hold what the collective promises at the end";
    }
    return "?";
  }
};

}  // namespace rondo::inline v0
