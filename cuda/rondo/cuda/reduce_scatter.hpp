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

/// Reduce-scatter in one hop: every rank pushes block q of its `in`, which has Ranks blocks of `count` elements, to
/// rank q, who folds what came into its `out` of `count` elements. One barrier.
///
/// A kernel (see one_shot). `out` may be the rank's own block of `in`. The epilogue sees every element of the rank's
/// block once; its number counts within the block.
template <int Ranks, class T, class Op = sum_op, class Epilogue = keep, class Out = T,
          class Accumulator = accumulator_t<T, Op>>
struct reduce_scatter {
  link<Ranks> ranks;
  T const* in;
  Out* out;
  std::size_t count;  ///< elements of a block
  Op op{};
  Epilogue epilogue{};

  template <class Context>
  RONDO_HD void operator()(Context& context) const {
    using P = pack<T>;
    folding<Ranks, T, Op, Accumulator> const fold{op};
    session<Context, Ranks> s(context, ranks);
    auto const block = [&](rank_t q) {
      return view<T const, P::count>(in + static_cast<std::size_t>(q) * count, count);
    };
    view<Out, P::count> const result(out, count);
    std::size_t const room = ranks.shape.window_bytes / sizeof(P) / Ranks;
    slices<P, Context, Ranks> const contributions(s, room);

    s.in_windows(result.packs(), room, [&](std::size_t first, std::size_t n) {
      s.each(n, [&](std::size_t i) {
        for (int d = 1; d < Ranks; ++d) {
          rank_t const owner = s.right(d);
          contributions.put(owner, i, fold.prepare(block(owner).load(first + i)));
        }
      });
      if (!s.barrier()) return false;
      s.each(n, [&](std::size_t i) {
        P x[Ranks];
        contributions.get_all(i, fold.prepare(block(ranks.rank).load(first + i)), x);
        result.store(first + i, reduce<Out>(context, fold, epilogue, x, (first + i) * P::count, count));
      });
      return true;
    });
  }
};

}  // namespace rondo::inline v0::device
