#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/board.hpp>
#include <rondo/cuda/folding.hpp>
#include <rondo/cuda/pack.hpp>
#include <rondo/cuda/session.hpp>
#include <rondo/ops.hpp>

#include <cstddef>

namespace rondo::inline v0::device {

/// All-reduce in one hop: every rank pushes all that it has to everybody, and everybody folds everything. One barrier,
/// Ranks times the bytes of a two-shot: for buffers of up to some hundred KiB, and for 2 ranks always.
///
/// A kernel: a value that every thread of a grid calls with its context. All ranks run the same one with the same
/// count, operation and number of blocks. `out` may be `in`. The epilogue sees every element on every rank.
///
/// The one-shot of Thakur et al. (IJHPCA 19(1), 2005) as direct GPU kernels do it; the data is pushed since a store
/// takes one trip to the peer and a load takes two.
template <int Ranks, class T, class Op = sum_op, class Epilogue = keep, class Out = T,
          class Accumulator = accumulator_t<T, Op>>
struct one_shot {
  link<Ranks> ranks;
  T const* in;
  Out* out;
  std::size_t count;  ///< elements
  Op op{};
  Epilogue epilogue{};

  template <class Context>
  RONDO_HD void operator()(Context& context) const {
    using P = pack<T>;
    folding<Ranks, T, Op, Accumulator> const fold{op};
    session<Context, Ranks> s(context, ranks);
    view<T const, P::count> const source(in, count);
    view<Out, P::count> const result(out, count);
    rank_t const me = ranks.rank;
    std::size_t const room = ranks.shape.window_bytes / sizeof(P) / Ranks;  // packs of a rank in a window

    for (std::size_t first = 0; first < source.packs(); first += room, s.next_window()) {
      std::size_t const n = source.packs() - first < room ? source.packs() - first : room;
      s.each(n, [&](std::size_t i) {
        P const x = fold.prepare(source.load(first + i));
        for (int d = 1; d < Ranks; ++d) s.template window<P>(s.right(d))[static_cast<std::size_t>(me) * room + i] = x;
      });
      if (!s.barrier()) return;
      s.each(n, [&](std::size_t i) {
        P x[Ranks];
        for (int q = 0; q < Ranks; ++q)
          x[q] = q == me ? fold.prepare(source.load(first + i))
                         : s.template window<P>(me)[static_cast<std::size_t>(q) * room + i];
        result.store(first + i, reduce<Out>(context, fold, epilogue, x, (first + i) * P::count, count));
      });
    }
    s.close();
  }
};

}  // namespace rondo::inline v0::device
