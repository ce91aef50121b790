#pragma once

#include <rondo/config.hpp>

#include <cstdint>

namespace rondo::inline v0 {

/// Number of a rank within its communicator: 0 … size - 1.
using rank_t = int;

/// No rank: nothing is sent, or nothing is received.
inline constexpr rank_t nobody = -1;

/// The chunks first, first + 1, … of a buffer, `count` of them, counted cyclically: chunk `chunks() - 1` is followed by
/// 0.
struct slice {
  int first = 0;
  int count = 0;

  friend constexpr bool operator==(slice, slice) = default;
};

/// What an arriving slice does to the one already here.
enum class merge : std::uint8_t {
  overwrite,  ///< mine = theirs
  fold,       ///< mine = op(mine, theirs)
  fold_front  ///< mine = op(theirs, mine): for senders that come before this rank in the order of the operands
};

/// One round of one rank: send `out` to `to` while receiving `in` from `from`. Pure data, no pointers.
///
/// `out` and `in` of one round are either disjoint or the same slice; then the values sent are those before the merge.
struct step {
  rank_t to = nobody;
  slice out{};
  rank_t from = nobody;
  slice in{};
  merge how = merge::overwrite;
  bool keep = true;  ///< false: after the merge the slice is only sent on, in the next round, and its place is free
  bool completes = false;  ///< the merge makes the slice final: every contribution is in, folded by this rank itself

  friend constexpr bool operator==(step const&, step const&) = default;
};

}  // namespace rondo::inline v0
