#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/board.hpp>
#include <rondo/cuda/pack.hpp>
#include <rondo/cuda/session.hpp>
#include <rondo/types.hpp>

#include <cstddef>

namespace rondo::inline v0::device {

/// Messages between the same block of two ranks, first in, first out: a tile of at most shape.tile_packs packs each,
/// stored in the receiver's arena. Who sends waits for a slot that the receiver has emptied.
///
/// All threads of the block call alike. P is the pack that tiles are made of.
template <class Context, int Ranks, class P>
class tiles {
 public:
  RONDO_HD tiles(Context& context, link<Ranks> const& ranks) noexcept
      : context_(context), ranks_(ranks), own_(ranks.board(ranks.rank)), row_(context.block()) {}

  /// Sends the packs make(0) … make(count - 1). False, in all threads, if the peer takes too long.
  template <class Make>
  RONDO_HD bool send(rank_t to, std::size_t count, Make const& make) {
    flag const number = own_.sent[row_][to];
    bool const first = context_.thread() == 0;
    if (!context_.sync_and(!first ||
                           wait_for(context_, ranks_, to, number + 1 - ranks_.shape.slots, own_.credited[row_][to])))
      return false;
    if (first) own_.sent[row_][to] = number + 1;  // all have read it
    P* const slot = place(to, ranks_.rank, number);
    for (std::size_t i = context_.thread(); i < count; i += context_.threads()) slot[i] = make(i);
    context_.sync();  // all of it is stored before the flag says so
    if (first) context_.store_release(ranks_.board(to).posted[row_][ranks_.rank], number + 1);
    return true;
  }

  /// Waits for the next tile and calls take(i, pack i) for i < count. False, in all threads, if it takes too long.
  template <class Take>
  RONDO_HD bool receive(rank_t from, std::size_t count, Take const& take) {
    flag const number = own_.received[row_][from];
    bool const first = context_.thread() == 0;
    if (!context_.sync_and(!first || wait_for(context_, ranks_, from, number + 1, own_.posted[row_][from])))
      return false;
    if (first) own_.received[row_][from] = number + 1;
    P const* const slot = place(ranks_.rank, from, number);
    for (std::size_t i = context_.thread(); i < count; i += context_.threads()) take(i, slot[i]);
    context_.sync();  // all of it is taken before the slot is handed back
    if (first) context_.store_release(ranks_.board(from).credited[row_][ranks_.rank], number + 1);
    return true;
  }

 private:
  RONDO_HD P* place(rank_t at, rank_t from, flag number) const noexcept {
    arena_shape const& shape = ranks_.shape;
    std::size_t const lane = std::size_t{row_} * Ranks + static_cast<std::size_t>(from);
    std::size_t const slot = lane * shape.slots + number % shape.slots;
    return reinterpret_cast<P*>(ranks_.arenas[at] + shape.tiles_at(Ranks) + slot * shape.tile_packs * 16);
  }

  Context& context_;
  link<Ranks> const& ranks_;
  board& own_;
  unsigned row_;
};

}  // namespace rondo::inline v0::device
