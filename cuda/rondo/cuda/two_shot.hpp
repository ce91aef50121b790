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

/// All-reduce in two hops: every rank pushes each slice to its owner, the owner folds it and pushes the result to
/// everybody. Two barriers, 2 (Ranks - 1) / Ranks of the buffer sent by each rank, which is the least there can be.
///
/// A kernel (see one_shot). The epilogue sees every element once, on the rank that owns it.
template <int Ranks, class T, class Op = sum_op, class Epilogue = keep, class Out = T,
          class Accumulator = accumulator_t<T, Op>>
struct two_shot {
  link<Ranks> ranks;
  T const* in;
  Out* out;
  std::size_t count;  ///< elements
  Op op{};
  Epilogue epilogue{};

  template <class Context>
  RONDO_HD void operator()(Context& context) const {
    using P = pack<T>;
    using R = pack<Out, P::count>;
    folding<Ranks, T, Op, Accumulator> const fold{op};
    session<Context, Ranks> s(context, ranks);
    view<T const, P::count> const source(in, count);
    view<Out, P::count> const result(out, count);
    // Packs of a rank in a window, which has a half for contributions and a half for results.
    std::size_t const room = ranks.shape.window_bytes / (sizeof(P) + sizeof(R)) / Ranks / 16 * 16;
    slices<P, Context, Ranks> const contributions(s, room);
    slices<R, Context, Ranks> const results(s, room, Ranks * room * sizeof(P));

    s.in_windows(source.packs(), Ranks * room, [&](std::size_t first, std::size_t n) {
      std::size_t const share = (n + Ranks - 1) / Ranks;
      auto const place = [&](rank_t owner, std::size_t i) { return static_cast<std::size_t>(owner) * share + i; };
      s.each(share, [&](std::size_t i) {
        for (int d = 1; d < Ranks; ++d) {
          rank_t const owner = s.right(d);
          std::size_t const at = place(owner, i);
          if (at < n) contributions.put(owner, i, fold.prepare(source.load(first + at)));
        }
      });
      if (!s.barrier()) return false;
      s.each(share, [&](std::size_t i) {
        std::size_t const at = place(ranks.rank, i);
        if (at >= n) return;
        P x[Ranks];
        contributions.get_all(i, fold.prepare(source.load(first + at)), x);
        R const y = reduce<Out>(context, fold, epilogue, x, (first + at) * P::count, count);
        result.store(first + at, y);
        results.put_all(i, y);
      });
      if (!s.barrier()) return false;
      s.each(share, [&](std::size_t i) {
        for (int d = 1; d < Ranks; ++d) {
          rank_t const owner = s.right(d);
          std::size_t const at = place(owner, i);
          if (at < n) result.store(first + at, results.get(owner, i));
        }
      });
      return true;
    });
  }
};

}  // namespace rondo::inline v0::device
