#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/board.hpp>
#include <rondo/cuda/folding.hpp>
#include <rondo/cuda/fused/block_quantized.hpp>
#include <rondo/cuda/pack.hpp>
#include <rondo/cuda/session.hpp>
#include <rondo/ops.hpp>

#include <concepts>
#include <cstddef>

namespace rondo::inline v0::device {

/// All-reduce whose bytes on the links are Q with a scale for every `Block` elements: a little more than half of those
/// of bfloat16, for an error of each contribution and of the result of up to half a step of Q.
///
/// A two_shot. The owner of a slice folds its own contribution, which needs no quantising, and those of the others in
/// float, quantises the total once, and uses what comes of it itself: all ranks get the same bits.
///
/// With `residual`, which is zero at first, what quantising has taken away is added to the next contribution (Seide et
/// al., 1-bit stochastic gradient descent, Interspeech 2014, section 3.1); of the total, to the owner's.
///
/// A kernel (see one_shot), for sum and avg. A block of elements is one thread's. `out` may be `in`.
template <int Ranks, class T, class Q, class Op = sum_op, std::size_t Block = 32>
struct quantized {
  static_assert(Block % pack_count<T> == 0, "a block is whole packs");
  static constexpr bool averages = std::same_as<Op, avg_op>;
  static_assert(averages || std::same_as<Op, sum_op>, "quantised contributions can be added: use sum or avg");

  link<Ranks> ranks;
  T const* in;
  T* out;
  std::size_t count;          ///< elements
  float* residual = nullptr;  ///< of `count`, this rank's alone

  template <class Context>
  RONDO_HD void operator()(Context& context) const {
    using B = quantized_block<Q, Block>;
    session<Context, Ranks> s(context, ranks);
    view<T const, Block> const source(in, count);
    view<T, Block> const result(out, count);
    view<float, Block> const rest(residual, residual ? count : 0);
    auto const me = static_cast<std::size_t>(ranks.rank);
    std::size_t const blocks = source.packs();
    // Blocks of a rank in a window, which has a half for contributions and a half for results; scales lie apart.
    std::size_t const room = ranks.shape.window_bytes / (2 * (Block + sizeof(float))) / Ranks / 4 * 4;
    std::size_t const results_at = Ranks * room * (Block + sizeof(float)), scales_at = Ranks * room * Block;

    auto const put = [&](rank_t q, std::size_t half, std::size_t i, B const& y) {
      s.template window<pack<Q, Block>>(q, half)[me * room + i] = y.numbers;
      s.template window<float>(q, half + scales_at)[me * room + i] = y.scale;
    };
    auto const get = [&](std::size_t from, std::size_t half, std::size_t i) {
      return B{s.template window<pack<Q, Block>>(ranks.rank, half)[from * room + i],
               s.template window<float>(ranks.rank, half + scales_at)[from * room + i]};
    };

    auto const contribution = [&](std::size_t i, float(&x)[Block]) {
      auto const y = source.load(i);
      auto const more = rest.load(residual ? i : 0);
      for (std::size_t j = 0; j < Block; ++j) x[j] = static_cast<float>(y.values[j]) + more.values[j];
    };
    auto const keep_rest = [&](std::size_t i, float const(&x)[Block], B const& y, float times) {
      if (!residual) return;
      pack<float, Block> z;
      for (std::size_t j = 0; j < Block; ++j) {
        float const lost = (x[j] - y[j]) * times;
        z.values[j] = is_finite(lost) ? lost : 0;
      }
      rest.store(i, z);
    };
    auto const use = [&](std::size_t i, B const& y) {
      pack<T, Block> z;
      for (std::size_t j = 0; j < Block; ++j) z.values[j] = static_cast<T>(y[j]);
      result.store(i, z);
    };

    for (std::size_t first = 0; first < blocks; first += Ranks * room, s.next_window()) {
      std::size_t const n = blocks - first < Ranks * room ? blocks - first : Ranks * room;
      std::size_t const share = (n + Ranks - 1) / Ranks;
      s.each(share, [&](std::size_t i) {
        for (int d = 1; d < Ranks; ++d) {
          rank_t const owner = s.right(d);
          std::size_t const at = static_cast<std::size_t>(owner) * share + i;
          if (at >= n) continue;
          float x[Block];
          contribution(first + at, x);
          B const y = B::of(x);
          put(owner, 0, i, y);
          keep_rest(first + at, x, y, 1);
        }
      });
      if (!s.barrier()) return;
      s.each(share, [&](std::size_t i) {
        std::size_t const at = me * share + i;
        if (at >= n) return;
        float total[Block];
        contribution(first + at, total);
        for (std::size_t j = 0; j < Block; ++j) {
          float x[Ranks];
          for (std::size_t q = 0; q < Ranks; ++q) x[q] = q == me ? total[j] : get(q, 0, i)[j];
          total[j] = fold(x);
        }
        B const y = B::of(total);
        use(first + at, y);
        keep_rest(first + at, total, y, averages ? Ranks : 1);  // a contribution counts for a part of the mean only
        for (int d = 1; d < Ranks; ++d) put(s.right(d), results_at, i, y);
      });
      if (!s.barrier()) return;
      s.each(share, [&](std::size_t i) {
        for (int d = 1; d < Ranks; ++d) {
          auto const owner = static_cast<std::size_t>(s.right(d));
          std::size_t const at = owner * share + i;
          if (at < n) use(first + at, get(owner, results_at, i));
        }
      });
    }
    s.close();
  }

 private:
  RONDO_HD static float fold(float (&x)[Ranks]) noexcept {
    rondo::detail::fold_elements<Ranks>(sum, x);
    return averages ? avg.finish<float>(x[0], Ranks) : x[0];
  }
};

}  // namespace rondo::inline v0::device
