#pragma once

#include <rondo/communicator.hpp>
#include <rondo/detail/step_kernel.hpp>
#include <rondo/fused/clip.hpp>
#include <rondo/fused/finite.hpp>
#include <rondo/fused/sharded_state.hpp>
#include <rondo/fused/sum_of_squares.hpp>
#include <rondo/ops.hpp>
#include <rondo/options.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace rondo::inline v0 {

struct step_options {
  /// Factor of the mean gradient, for example one over a loss scale.
  float scale = 1;

  /// Greatest global L2 norm of the scaled mean gradient, see clip_factor.
  double max_norm = std::numeric_limits<double>::infinity();

  call_options call{};  ///< of the collectives that a step is made of
};

/// What a step has found out: the same on all ranks.
struct step_report {
  double norm = 0;       ///< global L2 norm of the scaled mean gradient, before clipping
  bool skipped = false;  ///< some reduced gradient was infinite or NaN: nothing was changed
};

namespace detail {

/// Makes the new weights of a shard, for the all-gather of a step.
template <class Update, class O>
auto step_producer(Update const& update, float factor, sharded_state<O>& state) noexcept {
  auto const moments = [&state]<std::size_t... K>(std::index_sequence<K...>) noexcept {
    return std::array<float*, sizeof...(K)>{state.moment(K).data()...};
  };
  step_operands<O::moments> const all{state.gradient().data(), factor, state.master().data(),
                                      moments(std::make_index_sequence<O::moments>{}), nullptr};
  return [update, all]<class U>(std::size_t first, std::span<U> out) noexcept {
    auto* const to = reinterpret_cast<std::byte*>(out.data());
    step_with<U>(best_instruction_set(), update, all.from(first, to), out.size());
  };
}

}  // namespace detail

/// One optimizer step of data-parallel training, from the gradients of all ranks to the new weights on all ranks.
///
/// The owner of a shard reduces its gradients to their mean in float, updates its weights in full precision and hands
/// them to all, cast to the type of `weights`: reduce-scatter, global norm, clip, step, cast and all-gather, each pass
/// over memory with its neighbour. If a reduced gradient is not finite, all ranks skip the step alike. Where ranks
/// share memory and `gradients` and `weights` are registered (communicator::allocate), owners read and write the
/// buffers of all where they lie.
///
/// `gradients` are float, bfloat16 or float16, and kept. `weights` end as the same bits on all ranks; those that it has
/// before do not count, the state has them. All ranks pass the same optimizer and options. With `call.ordered` the
/// bits are a function of the gradients, the state and the number of ranks: the same over every transport. Blocks.
template <transport X, buffer G, writable_buffer W, optimizer O>
step_report sync_and_step(communicator<X>& comm, G&& gradients, W&& weights, sharded_state<O>& state,
                          step_options const& options = {}) {
  static_assert(std::is_same_v<accumulator_t<element_of<G>>, float>,
                "sync_and_step accumulates in float: give it gradients of float, bfloat16 or float16");
  static_assert(std::is_same_v<accumulator_t<element_of<W>>, float>,
                "sync_and_step casts weights from float: give it weights of float, bfloat16 or float16");
  if (std::size(gradients) != state.elements() || std::size(weights) != state.elements())
    throw invalid_argument("sync_and_step has " + std::to_string(std::size(gradients)) + " gradients and " +
                           std::to_string(std::size(weights)) + " weights for the state of " +
                           std::to_string(state.elements()) + " weights: pass as many of each");
  sum_of_squares squares;
  comm.reduce_scatter_v(
      gradients, state.gradient(), state.counts(), avg,
      [&squares](std::size_t, std::span<float const> values, std::span<float> out) noexcept {
        std::copy(values.begin(), values.end(), out.begin());
        squares.add(values);
      },
      options.call);
  std::array<double, 1> total{squares.total()};
  call_options scalar = options.call;
  scalar.algorithm = algorithm::automatic;
  scalar.ordered = true;
  comm.all_reduce(total, sum, scalar);
  double const scaled = total[0] * static_cast<double>(options.scale) * static_cast<double>(options.scale);
  step_report report{.norm = std::sqrt(scaled)};
  report.skipped = !is_finite(static_cast<float>(report.norm));  // else no scaled gradient is greater than this
  if (report.skipped) return report;
  float const factor = options.scale * clip_factor(scaled, options.max_norm);
  comm.all_gather_v(detail::step_producer(state.optimizer.at(++state.steps), factor, state), weights, state.counts(),
                    options.call);
  return report;
}

}  // namespace rondo::inline v0
