#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/board.hpp>
#include <rondo/cuda/folding.hpp>
#include <rondo/cuda/pack.hpp>
#include <rondo/cuda/session.hpp>
#include <rondo/cuda/tiles.hpp>
#include <rondo/ops.hpp>
#include <rondo/schedule/arithmetic.hpp>

#include <cstddef>

namespace rondo::inline v0::device {

/// All-reduce round a ring, from neighbour to neighbour: for links that only join neighbours, and for buffers so large
/// that nothing but their bytes matters.
///
/// A tile of every slice goes all the way round before the next one starts, and a thread keeps its pack in registers
/// between receiving and sending on: what is on its way is in no memory but the slots. The tree of a sum depends on the
/// slice; partial results travel in `Wire`, T unless told otherwise, and are rounded to it.
///
/// A kernel (see one_shot). The epilogue sees every element once, on the rank where its sum is complete; the result
/// travels on in Wire.
template <int Ranks, class T, class Op = sum_op, class Epilogue = keep, class Out = T, class Wire = T>
struct ring {
  static_assert(is_commutative_v<Op>, "a ring reorders operands: use one_shot or two_shot, or commutative(op)");
  static_assert(sizeof(Out) <= sizeof(Wire), "results travel in slots for partial sums: choose a wider Wire");

  link<Ranks> ranks;
  T const* in;
  Out* out;
  std::size_t count;  ///< elements
  Op op{};
  Epilogue epilogue{};

  template <class Context>
  RONDO_HD void operator()(Context& context) const {
    using P = pack<Wire>;
    using Fold = folding<Ranks, T, Op, Wire>;
    using R = pack<Out, P::count>;
    Fold const fold{op};
    tiles<Context, Ranks, P> partials(context, ranks);
    tiles<Context, Ranks, R> results(context, ranks);
    view<T const, P::count> const source(in, count);
    view<Out, P::count> const result(out, count);
    rank_t const next = rondo::detail::wrap(ranks.rank + 1, Ranks),
                 previous = rondo::detail::wrap(ranks.rank - 1, Ranks);
    std::size_t const packs = source.packs(), share = (packs + Ranks - 1) / Ranks;
    std::size_t const width = context.threads() < ranks.shape.tile_packs ? context.threads() : ranks.shape.tile_packs;

    for (std::size_t at = context.block() * width; at < share; at += context.blocks() * width) {
      std::size_t const mine = at + context.thread();  // pack of every slice that is this thread's
      bool const within = context.thread() < width && mine < share;
      auto const place = [&](int steps) {  // in the slice that is here after so many steps
        rank_t const slice = rondo::detail::wrap(ranks.rank - steps - 1, Ranks);
        return static_cast<std::size_t>(slice) * share + mine;
      };
      auto const contribution = [&](int steps) {
        P x{};
        std::size_t const i = place(steps);
        if (!within || i >= packs) return x;
        auto const y = fold.prepare(source.load(i));
        for (std::size_t j = 0; j < P::count; ++j) x.values[j] = static_cast<Wire>(y.values[j]);
        return x;
      };

      P sum = contribution(0);
      for (int steps = 1; steps < Ranks; ++steps) {
        if (!partials.send(next, width, [&](std::size_t) { return sum; })) return;
        P const own = contribution(steps);
        auto const add = [&](std::size_t, P const& x) {
          for (std::size_t j = 0; j < P::count; ++j)
            sum.values[j] = rondo::detail::combine<Wire>(op, x.values[j], own.values[j]);
        };
        if (!partials.receive(previous, width, add)) return;
      }
      R done{};
      if (std::size_t const i = place(Ranks - 1); within && i < packs) {
        for (std::size_t j = 0; j < P::count; ++j)
          if (i * P::count + j < count)
            done.values[j] = apply<Out>(context, epilogue, i * P::count + j, fold.finish(sum.values[j]));
        result.store(i, done);
      }
      for (int steps = Ranks; steps < 2 * Ranks - 1; ++steps) {
        if (!results.send(next, width, [&](std::size_t) { return done; })) return;
        if (!results.receive(previous, width, [&](std::size_t, R const& x) { done = x; })) return;
        if (std::size_t const i = place(steps - Ranks); within && i < packs) result.store(i, done);
      }
    }
  }
};

}  // namespace rondo::inline v0::device
