#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/board.hpp>
#include <rondo/cuda/pack.hpp>
#include <rondo/cuda/session.hpp>
#include <rondo/types.hpp>

#include <cstddef>

namespace rondo::inline v0::device {

/// Broadcast in one hop: the root pushes its `data` to everybody. One barrier, at which all ranks meet, the root too.
///
/// A kernel (see one_shot).
template <int Ranks, class T>
struct broadcast {
  link<Ranks> ranks;
  T* data;
  std::size_t count;  ///< elements
  rank_t root = 0;

  template <class Context>
  RONDO_HD void operator()(Context& context) const {
    using P = pack<T>;
    session<Context, Ranks> s(context, ranks);
    view<T, P::count> const buffer(data, count);
    std::size_t const room = ranks.shape.window_bytes / sizeof(P);
    auto const window = [&](rank_t q) { return reinterpret_cast<P*>(s.window(q)); };

    s.in_windows(buffer.packs(), room, [&](std::size_t first, std::size_t n) {
      if (ranks.rank == root)
        s.each(n, [&](std::size_t i) {
          P const x = buffer.load(first + i);
          for (int d = 1; d < Ranks; ++d) window(s.right(d))[i] = x;
        });
      if (!s.barrier()) return false;
      if (ranks.rank != root) s.each(n, [&](std::size_t i) { buffer.store(first + i, window(ranks.rank)[i]); });
      return true;
    });
  }
};

}  // namespace rondo::inline v0::device
