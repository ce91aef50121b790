#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/board.hpp>
#include <rondo/cuda/pack.hpp>
#include <rondo/cuda/session.hpp>
#include <rondo/cuda/slices.hpp>

#include <cstddef>

namespace rondo::inline v0::device {

/// All-gather in one hop: every rank pushes its `count` elements to everybody, whose `out` has a block of `count` for
/// each rank. One barrier.
///
/// A kernel (see one_shot). `in` may be the rank's own block of `out`.
template <int Ranks, class T>
struct all_gather {
  link<Ranks> ranks;
  T const* in;
  T* out;
  std::size_t count;  ///< elements of a block

  template <class Context>
  RONDO_HD void operator()(Context& context) const {
    using P = pack<T>;
    session<Context, Ranks> s(context, ranks);
    view<T const, P::count> const source(in, count);
    auto const block = [&](rank_t q) { return view<T, P::count>(out + static_cast<std::size_t>(q) * count, count); };
    std::size_t const room = ranks.shape.window_bytes / sizeof(P) / Ranks;
    slices<P, Context, Ranks> const blocks(s, room);

    s.in_windows(source.packs(), room, [&](std::size_t first, std::size_t n) {
      s.each(n, [&](std::size_t i) {
        P const x = source.load(first + i);
        blocks.put_all(i, x);
        block(ranks.rank).store(first + i, x);
      });
      if (!s.barrier()) return false;
      s.each(n, [&](std::size_t i) {
        for (int d = 1; d < Ranks; ++d) {
          rank_t const q = s.right(d);
          block(q).store(first + i, blocks.get(q, i));
        }
      });
      return true;
    });
  }
};

}  // namespace rondo::inline v0::device
