#pragma once

#include <rondo/types.hpp>

#include <concepts>
#include <type_traits>

namespace rondo::inline v0 {

/// An algorithm, written once: a pure function from (rank, round) to what that rank does in that round.
///
/// Everything else is an interpreter of this value: the host executor runs it over a transport, a kernel runs it on a
/// device, the verifier runs it on symbols, the cost model on a clock, the plotter on paper.
///
/// Laws (checked by `verify`):
///  1. Rounds are global: at(r, i).to == q if and only if at(q, i).from == r, and the counts of both slices agree.
///     A rank that has nothing to do in a round returns step{}. So one send and one receive per rank and round, and
///     executing the rounds in order cannot deadlock: the oldest unfinished message can always move.
///  2. `out` and `in` of one round are disjoint or equal.
///  3. With `period()` segments of the buffer may follow each other: segment k starts `period()` rounds after segment
///     k - 1 and every rank works through the rounds of all segments in the order of the global clock
///     i + k * period(). period() == rounds() means one segment after the other.
///  4. `keep == false` only if the next round sends exactly that slice, and nothing reads it before it is overwritten.
///  5. `completes` exactly when the merge makes a slice final that no other rank made final for this one.
// clang-format off (version 14 breaks the line before noexcept)
template <class S>
concept schedule = std::is_trivially_copyable_v<S> && requires(S const s, rank_t r, int i) {
  { s.ranks() }
  noexcept->std::same_as<int>;  // world size
  { s.chunks() }
  noexcept->std::same_as<int>;  // pieces that the buffer is cut into
  { s.rounds() }
  noexcept->std::same_as<int>;  // the same number for every rank
  { s.period() }
  noexcept->std::same_as<int>;  // 1 … max(1, rounds())
  { s.at(r, i) }
  noexcept->std::same_as<step>;
};
// clang-format on

}  // namespace rondo::inline v0
