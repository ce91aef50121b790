#pragma once

#include <rondo/config.hpp>
#include <rondo/error.hpp>
#include <rondo/types.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace rondo::inline v0::device {

/// Most ranks that kernels can connect, and most blocks that a rank may launch.
inline constexpr int max_ranks = 16;
inline constexpr unsigned max_blocks = 64;

/// Counts events and wraps. A flag has one writer, who only ever counts up.
using flag = std::uint32_t;

/// Whether a flag has come as far as `wanted`: less than half of its range ahead. A plain comparison would hold for
/// 2^32 events and then let everybody through too early.
RONDO_HD constexpr bool reached(flag seen, flag wanted) noexcept {
  return static_cast<std::int32_t>(seen - wanted) >= 0;
}
static_assert(reached(7, 7) && reached(8, 7) && !reached(6, 7), "reached() means at least");
static_assert(reached(0, 0xffffffff) && !reached(0xffffffff, 0), "after the largest number comes 0");

/// Why a kernel gave up: who waited for whom. Lies where the host can read it while kernels run.
struct fault {
  enum : flag {
    none = 0,
    waited_too_long = 1,
    told_to_stop = 2  ///< by the host, which stores this number
  };

  flag claimed = 0;    ///< by the first to give up, who writes the rest
  flag raised = none;  ///< the last that is written; all waits of the rank end soon after
  rank_t rank = nobody;
  rank_t peer = nobody;  ///< the one that did not come
  std::uint32_t block = 0;
  flag seen = 0, wanted = 0;
};

/// The flags of a rank. Zeroed, and known to be zero, before any peer gets to see them.
///
/// Rows belong to a block, so that block b of a rank depends on nothing but block b of its peers. Those of one row lie
/// in one sector, apart from what others write.
struct board {
  // This rank's alone: kept here and advanced by kernels, so that a captured graph can be replayed.
  alignas(128) flag barriers[max_blocks];         ///< that this block has passed
  alignas(128) flag windows[max_blocks];          ///< that this rank has used; the same number in all blocks
  alignas(128) flag sent[max_blocks][max_ranks];  ///< tiles to a peer, and those from it
  alignas(128) flag received[max_blocks][max_ranks];

  // Written by peers, each in its own column.
  alignas(128) flag arrived[max_blocks][max_ranks];   ///< barriers that the peer has come to
  alignas(128) flag posted[max_blocks][max_ranks];    ///< tiles that the peer has sent
  alignas(128) flag credited[max_blocks][max_ranks];  ///< tiles that the peer has taken out
};

/// How the memory that a rank lends to its peers is divided, behind its board. The same on all ranks.
struct arena_shape {
  std::size_t words = 8192;            ///< of 4 bytes that a low-latency call can have, from each rank
  std::size_t window_bytes = 8 << 20;  ///< through which longer calls pass piece by piece; there are two of them
  std::size_t tile_packs = 512;        ///< of 16 bytes that are sent on at once along a schedule
  unsigned slots = 4;                  ///< tiles in flight between two blocks; a power of two
  unsigned blocks = 32;                ///< most blocks of a launch, at most max_blocks

  /// Two generations of words, of 8 bytes each, from every rank.
  RONDO_HD constexpr std::size_t words_at() const noexcept { return sizeof(board); }
  /// A number from every block of every rank, as two words.
  RONDO_HD constexpr std::size_t partials_at(int ranks) const noexcept {
    return words_at() + 2 * words * 8 * static_cast<std::size_t>(ranks);
  }
  RONDO_HD constexpr std::size_t windows_at(int ranks) const noexcept {
    return partials_at(ranks) + 2 * 8 * static_cast<std::size_t>(blocks) * static_cast<std::size_t>(ranks);
  }
  RONDO_HD constexpr std::size_t tiles_at(int ranks) const noexcept { return windows_at(ranks) + 2 * window_bytes; }
  RONDO_HD constexpr std::size_t bytes(int ranks) const noexcept {
    return tiles_at(ranks) + std::size_t{blocks} * static_cast<std::size_t>(ranks) * slots * tile_packs * 16;
  }

  /// Throws invalid_argument unless kernels of so many ranks find room for a step of theirs.
  void check(int ranks) const {
    bool const fits = ranks >= 1 && ranks <= max_ranks && blocks >= 1 && blocks <= max_blocks && words >= 2 &&
                      tile_packs >= 1 && std::has_single_bit(slots) && window_bytes % 128 == 0 &&
                      window_bytes >= std::size_t{16} * 1024 * static_cast<std::size_t>(ranks);
    if (!fits)
      throw invalid_argument("an arena has 1 to 64 blocks, slots in a power of two, and windows of at least 16 KiB for "
                             "each rank: give it another shape");
  }

  friend constexpr bool operator==(arena_shape const&, arena_shape const&) = default;
};

/// What a kernel has to know about its rank and its peers.
template <int Ranks>
struct link {
  static_assert(Ranks >= 1 && Ranks <= max_ranks, "kernels connect 1 to 16 ranks: use a communicator for more");

  rank_t rank;
  std::byte* arenas[Ranks];  ///< as this rank addresses them, aligned to 128 bytes, of shape.bytes(Ranks)
  arena_shape shape;
  fault* report;           ///< of this rank
  std::uint64_t patience;  ///< nanoseconds that a kernel waits for a peer before it gives up

  RONDO_HD device::board& board(rank_t q) const noexcept { return *reinterpret_cast<device::board*>(arenas[q]); }
};

}  // namespace rondo::inline v0::device
