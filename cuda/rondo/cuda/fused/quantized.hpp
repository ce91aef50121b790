#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/board.hpp>
#include <rondo/cuda/folding.hpp>
#include <rondo/cuda/fused/block_quantized.hpp>
#include <rondo/cuda/pack.hpp>
#include <rondo/cuda/session.hpp>
#include <rondo/cuda/slices.hpp>
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
  static constexpr unsigned max_threads = 256;        // a thread keeps a block and parts of those of all ranks
  static constexpr std::size_t part = pack_count<Q>;  // of a block: so much of all contributions fits into registers
  static_assert(Block % part == 0, "a block has a multiple of 8 elements");
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
    // Blocks of a rank in a window, which has contributions and results, numbers and scales apart.
    std::size_t const room = ranks.shape.window_bytes / (2 * (Block + sizeof(float))) / Ranks / 4 * 4;
    quantized_slices<Context> const contributions(s, room, 0);
    quantized_slices<Context> const results(s, room, Ranks * room * (Block + sizeof(float)));

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

    s.in_windows(source.packs(), Ranks * room, [&](std::size_t first, std::size_t n) {
      std::size_t const share = (n + Ranks - 1) / Ranks;
      auto const place = [&](rank_t owner, std::size_t i) { return static_cast<std::size_t>(owner) * share + i; };
      s.each(share, [&](std::size_t i) {
        for (int d = 1; d < Ranks; ++d) {
          rank_t const owner = s.right(d);
          std::size_t const at = place(owner, i);
          if (at >= n) continue;
          float x[Block];
          contribution(first + at, x);
          B const y = B::of(x);
          contributions.put(owner, i, y);
          keep_rest(first + at, x, y, 1);
        }
      });
      if (!s.barrier()) return false;
      s.each(share, [&](std::size_t i) {
        std::size_t const at = place(ranks.rank, i);
        if (at >= n) return;
        float total[Block];
        contribution(first + at, total);
        unrolled<Block / part>([&](std::size_t p) {
          quantized_block<Q, part> theirs[Ranks];
          for (rank_t q = 0; q < Ranks; ++q) theirs[q] = contributions.get_part(q, i, p);  // nobody stores to its own
          unrolled<part>([&](std::size_t j) {
            float& mine = total[p * part + j];
            float x[Ranks];
            for (rank_t q = 0; q < Ranks; ++q) x[q] = q == ranks.rank ? mine : theirs[q][j];
            mine = fold(x);
          });
        });
        B const y = B::of(total);
        use(first + at, y);
        keep_rest(first + at, total, y, averages ? Ranks : 1);  // a contribution counts for a part of the mean only
        for (int d = 1; d < Ranks; ++d) results.put(s.right(d), i, y);
      });
      if (!s.barrier()) return false;
      s.each(share, [&](std::size_t i) {
        for (int d = 1; d < Ranks; ++d) {
          rank_t const owner = s.right(d);
          std::size_t const at = place(owner, i);
          if (at < n) use(first + at, results.get(owner, i));
        }
      });
      return true;
    });
  }

 private:
  /// Slices of numbers, and behind all of those slices of scales.
  template <class Context>
  struct quantized_slices {
    using B = quantized_block<Q, Block>;

    RONDO_HD quantized_slices(session<Context, Ranks> const& s, std::size_t room, std::size_t offset) noexcept
        : numbers(s, room, offset), parts(s, room * (Block / part), offset),
          scales(s, room, offset + Ranks * room * Block) {}
    RONDO_HD void put(rank_t q, std::size_t i, B const& y) const noexcept {
      numbers.put(q, i, y.numbers), scales.put(q, i, y.scale);
    }
    RONDO_HD B get(rank_t q, std::size_t i) const noexcept { return {numbers.get(q, i), scales.get(q, i)}; }
    RONDO_HD quantized_block<Q, part> get_part(rank_t q, std::size_t i, std::size_t p) const noexcept {
      return {parts.get(q, i * (Block / part) + p), scales.get(q, i)};
    }

    slices<pack<Q, Block>, Context, Ranks> numbers;
    slices<pack<Q, part>, Context, Ranks> parts;  // of the same numbers
    slices<float, Context, Ranks> scales;
  };

  RONDO_HD static float fold(float (&x)[Ranks]) noexcept {
    rondo::detail::fold_elements<Ranks>(sum_op{}, x);
    return averages ? avg_op{}.finish<float>(x[0], Ranks) : x[0];
  }
};

}  // namespace rondo::inline v0::device
