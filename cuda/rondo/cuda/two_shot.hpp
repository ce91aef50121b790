#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/board.hpp>
#include <rondo/cuda/folding.hpp>
#include <rondo/cuda/pack.hpp>
#include <rondo/cuda/session.hpp>
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
    auto const me = static_cast<std::size_t>(ranks.rank);
    // Packs of a rank in a window, which has a half for contributions and a half for results.
    std::size_t const room = ranks.shape.window_bytes / (sizeof(P) + sizeof(R)) / Ranks / 16 * 16;
    std::size_t const results_at = Ranks * room * sizeof(P);

    for (std::size_t first = 0; first < source.packs(); first += Ranks * room, s.next_window()) {
      std::size_t const n = source.packs() - first < Ranks * room ? source.packs() - first : Ranks * room;
      std::size_t const share = (n + Ranks - 1) / Ranks;  // slice q is [q * share, (q + 1) * share)
      s.each(share, [&](std::size_t i) {
        for (int d = 1; d < Ranks; ++d) {
          rank_t const owner = s.right(d);
          std::size_t const at = static_cast<std::size_t>(owner) * share + i;
          if (at < n) s.template window<P>(owner)[me * room + i] = fold.prepare(source.load(first + at));
        }
      });
      if (!s.barrier()) return;
      s.each(share, [&](std::size_t i) {
        std::size_t const at = me * share + i;
        if (at >= n) return;
        P x[Ranks];
        for (std::size_t q = 0; q < Ranks; ++q)
          x[q] = q == me ? fold.prepare(source.load(first + at)) : s.template window<P>(ranks.rank)[q * room + i];
        R const y = reduce<Out>(context, fold, epilogue, x, (first + at) * P::count, count);
        result.store(first + at, y);
        for (int d = 1; d < Ranks; ++d) s.template window<R>(s.right(d), results_at)[me * room + i] = y;
      });
      if (!s.barrier()) return;
      s.each(share, [&](std::size_t i) {
        for (int d = 1; d < Ranks; ++d) {
          auto const owner = static_cast<std::size_t>(s.right(d));
          std::size_t const at = owner * share + i;
          if (at < n) result.store(first + at, s.template window<R>(ranks.rank, results_at)[owner * room + i]);
        }
      });
    }
    s.close();
  }
};

}  // namespace rondo::inline v0::device
