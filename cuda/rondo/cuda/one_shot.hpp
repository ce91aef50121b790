#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/board.hpp>
#include <rondo/cuda/folding.hpp>
#include <rondo/cuda/pack.hpp>
#include <rondo/cuda/session.hpp>
#include <rondo/cuda/slices.hpp>
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
    std::size_t const room = ranks.shape.window_bytes / sizeof(P) / Ranks;  // packs of a rank in a window
    slices<P, Context, Ranks> const contributions(s, room);

    s.in_windows(source.packs(), room, [&](std::size_t first, std::size_t n) {
      s.each(n, [&](std::size_t i) { contributions.put_all(i, fold.prepare(source.load(first + i))); });
      if (!s.barrier()) return false;
      s.each(n, [&](std::size_t i) {
        P x[Ranks];
        contributions.get_all(i, fold.prepare(source.load(first + i)), x);
        result.store(first + i, reduce<Out>(context, fold, epilogue, x, (first + i) * P::count, count));
      });
      return true;
    });
  }
};

}  // namespace rondo::inline v0::device
