#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/block.hpp>
#include <rondo/cuda/board.hpp>
#include <rondo/cuda/folding.hpp>
#include <rondo/cuda/pack.hpp>
#include <rondo/cuda/session.hpp>
#include <rondo/cuda/slices.hpp>
#include <rondo/ops.hpp>

#include <cmath>
#include <cstddef>

namespace rondo::inline v0::device {

/// One-shot all-reduce of activations, then residual += sum and out = RMSNorm(residual) * weight, row by row:
///
///   out = residual / sqrt(mean(residual^2) + epsilon) * weight
///
/// Zhang and Sennrich, Root Mean Square Layer Normalization, NeurIPS 2019. The sum of squares is one of the residual as
/// it is stored. For up to about half a MiB: beyond, a two_shot and a norm of its own are faster.
///
/// A kernel (see one_shot). A row is one block's; rows have a multiple of pack_count<T> elements. `out` may be `in`.
template <int Ranks, class T>
struct rms_norm {
  link<Ranks> ranks;
  T const* in;
  T* residual;      ///< the same on all ranks, before and after
  T const* weight;  ///< of a row
  T* out;
  std::size_t rows, row;  ///< elements of a row
  float epsilon;

  /// Whether rows are whole packs, and fit a window.
  bool fits() const noexcept { return row % pack_count<T> == 0 && row * sizeof(T) * Ranks <= ranks.shape.window_bytes; }

  template <class Context>
  RONDO_HD void operator()(Context& context) const {
    using P = pack<T>;
    folding<Ranks, T, sum_op, accumulator_t<T, sum_op>> const fold{};
    session<Context, Ranks> s(context, ranks);
    view<T const, P::count> const source(in, rows * row), scales(weight, row);
    view<T, P::count> const stream(residual, rows * row), result(out, rows * row);
    std::size_t const packs = row / P::count;                                       // of a row
    std::size_t const room = ranks.shape.window_bytes / sizeof(P) / Ranks / packs;  // rows of a rank in a window
    slices<P, Context, Ranks> const contributions(s, room * packs);

    s.in_windows(rows, room, [&](std::size_t first, std::size_t n) {
      each(context, n, packs, [&](std::size_t r, std::size_t i) {
        contributions.put_all(r * packs + i, source.load((first + r) * packs + i));
      });
      if (!s.barrier()) return false;
      for (std::size_t r = context.block(); r < n; r += context.blocks()) {
        double squares = 0;
        for (std::size_t i = context.thread(); i < packs; i += context.threads()) {
          std::size_t const at = (first + r) * packs + i;
          P x[Ranks];
          contributions.get_all(r * packs + i, source.load(at), x);
          P sum = stream.load(at);
          for (std::size_t j = 0; j < P::count; ++j) {
            sum.values[j] = static_cast<T>(static_cast<float>(sum.values[j]) + static_cast<float>(fold(x, j)));
            double const value = static_cast<float>(sum.values[j]);
            squares += value * value;
          }
          stream.store(at, sum);
        }
        double const mean = block_sum(context, squares) / static_cast<double>(row);
        float const factor = 1 / std::sqrt(static_cast<float>(mean) + epsilon);
        for (std::size_t i = context.thread(); i < packs; i += context.threads()) {
          std::size_t const at = (first + r) * packs + i;
          P x = stream.load(at);
          P const scale = scales.load(i);
          for (std::size_t j = 0; j < P::count; ++j)
            x.values[j] =
                static_cast<T>(static_cast<float>(x.values[j]) * factor * static_cast<float>(scale.values[j]));
          result.store(at, x);
        }
      }
      return true;
    });
  }

 private:
  /// Calls function(row, pack) for what is this thread's of n rows.
  template <class Context, class F>
  RONDO_HD static void each(Context& context, std::size_t n, std::size_t packs, F const& function) {
    for (std::size_t r = context.block(); r < n; r += context.blocks())
      for (std::size_t i = context.thread(); i < packs; i += context.threads()) function(r, i);
  }
};

}  // namespace rondo::inline v0::device
