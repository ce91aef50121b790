#pragma once

#include <rondo/config.hpp>

#include <cstddef>
#include <cstdint>

namespace rondo::inline v0 {

/// Stochastic gradient descent without memory of the past: weight -= rate (gradient + decay weight). An optimizer.
struct sgd {
  static constexpr std::size_t moments = 0;

  double learning_rate = 1e-2;
  double weight_decay = 0;

  /// One step, its factors rounded to float.
  struct update {
    static constexpr bool in_lanes = true;

    float rate, decay;

    template <class F>
    [[gnu::always_inline]] RONDO_HD void operator()(F const& gradient, F& weight) const noexcept {
      weight = weight - rate * (gradient + decay * weight);
    }
  };

  RONDO_HD update at(std::uint64_t) const noexcept {
    return {.rate = static_cast<float>(learning_rate), .decay = static_cast<float>(weight_decay)};
  }
};

}  // namespace rondo::inline v0
