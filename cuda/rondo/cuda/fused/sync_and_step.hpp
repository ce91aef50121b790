#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/block.hpp>
#include <rondo/cuda/board.hpp>
#include <rondo/cuda/exact_float.hpp>
#include <rondo/cuda/folding.hpp>
#include <rondo/cuda/pack.hpp>
#include <rondo/cuda/session.hpp>
#include <rondo/cuda/words.hpp>
#include <rondo/fused/clip.hpp>
#include <rondo/fused/finite.hpp>
#include <rondo/fused/optimizer.hpp>
#include <rondo/fused/shard.hpp>
#include <rondo/ops.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace rondo::inline v0::device {

/// What a step does, in device memory: a captured graph may be replayed with other values.
template <optimizer Rule>
struct step_settings {
  Rule rule;
  double max_norm = 0;  ///< of all gradients together, beyond which they are scaled down; 0: no limit
  float scale = 1;      ///< of the mean gradient, for example one over a loss scale
};

/// What became of the steps so far, in device memory, zeroed before the first; the same on all ranks.
struct step_outcome {
  std::uint64_t steps = 0;    ///< taken
  std::uint64_t skipped = 0;  ///< because a gradient was infinite or NaN; nothing changed then
  float norm = 0;             ///< of the mean gradients of the last call, before clipping
};

/// A training step of data-parallel ranks in one launch, without a round trip to the host: the mean of all gradients,
/// their global norm, clipping, the optimizer on the elements that the rank owns, and the new weights for everybody.
///
/// Gradients and weights lie in memory that all ranks address: the owner of an element reads the gradients of all and
/// stores the new weight to all. In full precision there is only the owner's part, `shard_of(count, rank, Ranks)`: the
/// master weights, the optimizer's moments, and the reduced gradients between the two halves of the step. Every element
/// is rounded once on its way into the master weight, and the norm is summed in one order: all ranks do the same.
///
/// A kernel (see one_shot), all of whose blocks have to run at the same time. Gradients may be overwritten afterwards.
template <int Ranks, class G, class W, optimizer Rule>
struct sync_and_step {
  static constexpr std::size_t moment_count = Rule::moments;

  link<Ranks> ranks;
  G const* gradients[Ranks];
  W* weights[Ranks];
  std::size_t count;  ///< elements of each of them
  float* reduced;
  float* master;
  float* moments;  ///< moment k of element i of the shard at k * shard + i
  step_settings<Rule> const* settings;
  step_outcome* outcome;

  template <class Context>
  RONDO_HD void operator()(Context& context) const {
    using P = pack<G>;
    session<Context, Ranks> s(context, ranks);
    shard const own = shard_of(count, ranks.rank, Ranks);
    std::size_t const packs = (own.count + P::count - 1) / P::count;
    view<float, P::count> const sums(reduced, own.count), full(master, own.count);

    if (!s.barrier()) return;  // the gradients of all ranks are final
    float const scale = settings->scale;
    std::uint64_t const number = outcome->steps + 1;
    folding<Ranks, G, avg_op, float> const mean{};
    double squares = 0;
    s.each(packs, [&](std::size_t i) {
      P x[Ranks];
      for (int q = 0; q < Ranks; ++q) x[q] = view<G const, P::count>(gradients[q] + own.first, own.count).load(i);
      pack<float, P::count> y;
      for (std::size_t j = 0; j < P::count; ++j) {
        y.values[j] = mean(x, j) * scale;
        squares += static_cast<double>(y.values[j]) * y.values[j];
      }
      sums.store(i, y);
    });
    if (!sum_over_ranks(context, s, squares)) return;

    bool const goes = is_finite(squares);
    if (goes) {
      auto const update = block_share(context, [&] { return settings->rule.at(number); });
      float const factor = block_share(
          context, [&] { return settings->max_norm > 0 ? clip_factor(squares, settings->max_norm) : 1.0F; });
      s.each(packs, [&](std::size_t i) {
        auto const gradient = sums.load(i);
        auto weight = full.load(i);
        pack<float, P::count> m[moment_count + 1];  // no array is empty
        for (std::size_t k = 0; k != moment_count; ++k) m[k] = moment(k, own.count).load(i);
        pack<W, P::count> out;
        for (std::size_t j = 0; j < P::count; ++j) {
          apply(update, gradient.values[j] * factor, weight.values[j], m, j, std::make_index_sequence<moment_count>{});
          out.values[j] = static_cast<W>(weight.values[j]);
        }
        full.store(i, weight);
        for (std::size_t k = 0; k != moment_count; ++k) moment(k, own.count).store(i, m[k]);
        for (int d = 0; d < Ranks; ++d) view<W, P::count>(weights[s.right(d)] + own.first, own.count).store(i, out);
      });
    }
    if (!s.barrier()) return;  // the weights of all ranks are new, and nobody reads gradients any more
    if (context.block() == 0 && context.thread() == 0) {
      // All blocks have read it, before they sent their squares.
      outcome->steps += goes;
      outcome->skipped += !goes;
      outcome->norm = static_cast<float>(std::sqrt(squares));
    }
    s.close();
  }

 private:
  RONDO_HD view<float, pack_count<G>> moment(std::size_t k, std::size_t size) const noexcept {
    return {moments + k * size, size};
  }

  template <class Update, class M, std::size_t... K>
  RONDO_HD static void apply(Update const& update, float gradient, float& weight, M& m, std::size_t j,
                             std::index_sequence<K...>) noexcept {
    if constexpr (std::is_invocable_v<Update const&, exact_float const&, exact_float&,
                                      std::conditional_t<K == K, exact_float&, void>...>) {
      exact_float const g = gradient;
      exact_float w = weight;
      exact_float values[] = {m[K].values[j]..., 0.0F};
      update(g, w, values[K]...);
      weight = static_cast<float>(w);
      ((m[K].values[j] = static_cast<float>(values[K])), ...);
    } else {
      update(gradient, weight, m[K].values[j]...);
    }
  }

  /// x = the sum of x over all threads of all ranks, in one order everywhere. False, in all threads, if a rank takes
  /// too long. Nobody comes here again before all have read: there is a barrier after it.
  template <class Context>
  RONDO_HD bool sum_over_ranks(Context& context, session<Context, Ranks>& s, double& x) const {
    using number = in_words<double>;
    unsigned const blocks = context.blocks();
    auto const place = [&](rank_t at, unsigned from) {
      return reinterpret_cast<std::uint64_t*>(ranks.arenas[at] + ranks.shape.partials_at(Ranks)) + from * number::count;
    };
    double const part = block_sum(context, x);
    auto const me = static_cast<unsigned>(ranks.rank);
    for (unsigned q = context.thread(); q < Ranks; q += context.threads())
      number::put(context, place(static_cast<rank_t>(q), me * blocks + context.block()), part, s.number());
    bool all = true;
    x = 0;
    for (unsigned from = context.thread(); from < Ranks * blocks; from += context.threads()) {
      double theirs = 0;
      all = all && number::get(context, ranks, static_cast<rank_t>(from / blocks), place(ranks.rank, from), theirs,
                               s.number());
      x += theirs;
    }
    s.next_window();
    if (!context.sync_and(all)) return false;
    x = block_sum(context, x);
    return true;
  }
};

}  // namespace rondo::inline v0::device
