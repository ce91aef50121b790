#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/board.hpp>
#include <rondo/cuda/folding.hpp>
#include <rondo/cuda/pack.hpp>
#include <rondo/cuda/session.hpp>
#include <rondo/cuda/words.hpp>
#include <rondo/ops.hpp>

#include <cstddef>
#include <cstdint>

namespace rondo::inline v0::device {

/// All-reduce of some KiB, in one hop and without a barrier: a one_shot whose data says itself when it has come. Twice
/// the bytes, and no more than the time that a store takes to a peer.
///
/// A kernel with the bits of one_shot (see there).
template <int Ranks, class T, class Op = sum_op, class Epilogue = keep, class Out = T,
          class Accumulator = accumulator_t<T, Op>>
struct low_latency {
  link<Ranks> ranks;
  T const* in;
  Out* out;
  std::size_t count;  ///< elements
  Op op{};
  Epilogue epilogue{};

  template <class Context>
  RONDO_HD void operator()(Context& context) const {
    using P = pack<T, sizeof(T) < 4 ? 4 / sizeof(T) : 1>;
    folding<Ranks, T, Op, Accumulator> const fold{op};
    session<Context, Ranks> s(context, ranks);
    view<T const, P::count> const source(in, count);
    view<Out, P::count> const result(out, count);
    auto const me = static_cast<std::size_t>(ranks.rank);
    std::size_t const room = ranks.shape.words / in_words<P>::count;
    auto const place = [&](rank_t at, std::size_t from, std::size_t i) {
      auto* const words = reinterpret_cast<std::uint64_t*>(ranks.arenas[at] + ranks.shape.words_at());
      return words + ((s.number() & 1) * Ranks + from) * ranks.shape.words + i * in_words<P>::count;
    };

    s.in_windows(source.packs(), room, [&](std::size_t first, std::size_t n) {
      s.each(n, [&](std::size_t i) {
        P const x = fold.prepare(source.load(first + i));
        for (int d = 1; d < Ranks; ++d) {
          rank_t const q = s.right(d);
          in_words<P>::put(context, place(q, me, i), x, s.number());
        }
      });
      bool all = true;
      s.each(n, [&](std::size_t i) {
        P x[Ranks];
        unrolled<Ranks>([&](std::size_t q) {
          if (q == me)
            x[q] = fold.prepare(source.load(first + i));
          else
            all = all &&
                  in_words<P>::get(context, ranks, static_cast<rank_t>(q), place(ranks.rank, q, i), x[q], s.number());
        });
        if (all) result.store(first + i, reduce<Out>(context, fold, epilogue, x, (first + i) * P::count, count));
      });
      return context.sync_and(all);
    });
  }
};

}  // namespace rondo::inline v0::device
