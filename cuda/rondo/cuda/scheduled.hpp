#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/board.hpp>
#include <rondo/cuda/folding.hpp>
#include <rondo/cuda/pack.hpp>
#include <rondo/cuda/session.hpp>
#include <rondo/cuda/tiles.hpp>
#include <rondo/ops.hpp>
#include <rondo/schedule.hpp>
#include <rondo/schedule/arithmetic.hpp>
#include <rondo/types.hpp>

#include <cstddef>

namespace rondo::inline v0::device {

/// Any schedule, run on the device: the value that the host executes, the verifier proves and the plotter draws.
///
/// `data` holds the chunks of the schedule one after the other, ceil(packs / chunks) packs each, and is reduced or
/// gathered in place. A tile of every chunk goes through all rounds before the next one starts. Tiles are pairwise and
/// rounds are global, so with one slot per pair already the oldest message can always move.
///
/// A kernel (see one_shot). The epilogue sees every element that a merge completes, on the rank that completes it.
/// Partial results are elements, rounded as such; so for an `ordered` schedule the bits are those of the host.
template <int Ranks, schedule S, class T, class Op = sum_op, class Epilogue = keep>
struct scheduled {
  static_assert(!op_traits<Op, T>::prepares && !op_traits<Op, T>::widens,
                "a schedule folds elements as they are: use one_shot, two_shot or ring for this operation");
  static_assert(
      is_commutative_v<Op> || !requires { requires !S::keeps_rank_order; },
      "the schedule reorders operands: use one that keeps the order of ranks, or commutative(op)");

  link<Ranks> ranks;
  S plan;
  T* data;
  std::size_t count;  ///< elements
  Op op{};
  Epilogue epilogue{};

  template <class Context>
  RONDO_HD void operator()(Context& context) const {
    using P = pack<T>;
    folding<Ranks, T, Op, T> const fold{op};
    tiles<Context, Ranks, P> messages(context, ranks);
    view<T, P::count> const buffer(data, count);
    std::size_t const packs = buffer.packs(), chunks = static_cast<std::size_t>(plan.chunks());
    std::size_t const share = (packs + chunks - 1) / chunks, width = ranks.shape.tile_packs;

    for (std::size_t at = context.block() * width; at < share; at += context.blocks() * width) {
      for (int round = 0; round < plan.rounds(); ++round) {
        step const now = plan.at(ranks.rank, round);
        int const sends = now.to == nobody ? 0 : now.out.count, takes = now.from == nobody ? 0 : now.in.count;
        for (int k = 0; k < sends || k < takes; ++k) {
          if (k < sends) {
            std::size_t const first = place(now.out.first + k, share, at);
            if (!messages.send(now.to, extent(first, at, packs, share, width),
                               [&](std::size_t i) { return buffer.load(first + i); }))
              return;
          }
          if (k < takes) {
            std::size_t const first = place(now.in.first + k, share, at);
            auto const merge_pack = [&](std::size_t i, P const& x) {
              std::size_t const element = (first + i) * P::count;
              P y = now.how == merge::overwrite ? x : buffer.load(first + i);
              for (std::size_t j = 0; j < P::count && now.how != merge::overwrite; ++j) {
                y.values[j] = now.how == merge::fold ? rondo::detail::combine<T>(op, y.values[j], x.values[j])
                                                     : rondo::detail::combine<T>(op, x.values[j], y.values[j]);
                if (now.completes && element + j < count)
                  y.values[j] = apply<T>(context, epilogue, element + j, fold.finish(y.values[j]));
              }
              buffer.store(first + i, y);
            };
            if (!messages.receive(now.from, extent(first, at, packs, share, width), merge_pack)) return;
          }
        }
      }
    }
  }

 private:
  /// First pack of a tile: the one that begins `at` packs after the begin of a chunk.
  RONDO_HD std::size_t place(int chunk, std::size_t share, std::size_t at) const noexcept {
    return static_cast<std::size_t>(chunk < plan.chunks() ? chunk : chunk - plan.chunks()) * share + at;
  }

  /// Its packs: fewer at the end of a chunk, and at that of the buffer.
  RONDO_HD static std::size_t extent(std::size_t first, std::size_t at, std::size_t packs, std::size_t share,
                                     std::size_t width) noexcept {
    std::size_t const left = share - at < width ? share - at : width;
    return first >= packs ? 0 : packs - first < left ? packs - first : left;
  }
};

}  // namespace rondo::inline v0::device
