#pragma once

#include <rondo/config.hpp>
#include <rondo/detail/square_root.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace rondo::inline v0 {

/// Adam with decoupled weight decay: Loshchilov and Hutter, Decoupled Weight Decay Regularization, ICLR 2019, algorithm
/// 2, with epsilon outside of the root as in Adam (Kingma and Ba, ICLR 2015, algorithm 1) and in torch.optim.AdamW. In
/// step t, from 1:
///
///   mean   = beta1 mean + (1 - beta1) gradient
///   square = beta2 square + (1 - beta2) gradient^2
///   weight = (1 - rate decay) weight - rate / (1 - beta1^t) mean / (sqrt(square) / sqrt(1 - beta2^t) + epsilon)
///
/// An optimizer (see there): `mean` and `square` are its two moments, both 0 at first.
struct adamw {
  static constexpr std::size_t moments = 2;

  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 1e-2;

  /// One step, its factors computed: in double, then rounded to float.
  struct update {
    static constexpr bool in_lanes = true;

    float beta1, rest1, beta2, rest2, keep, rate, spread, epsilon;

    template <class F>
    [[gnu::always_inline]] RONDO_HD void operator()(F const& gradient, F& weight, F& mean, F& square) const noexcept {
      mean = beta1 * mean + rest1 * gradient;
      square = beta2 * square + rest2 * (gradient * gradient);
      F root = square;
      detail::to_square_root(root);
      weight = keep * weight - rate * mean / (spread * root + epsilon);
    }
  };

  /// Step number t >= 1.
  RONDO_HD update at(std::uint64_t t) const noexcept {
    double const steps = static_cast<double>(t);
    return {.beta1 = static_cast<float>(beta1),
            .rest1 = static_cast<float>(1 - beta1),
            .beta2 = static_cast<float>(beta2),
            .rest2 = static_cast<float>(1 - beta2),
            .keep = static_cast<float>(1 - learning_rate * weight_decay),
            .rate = static_cast<float>(learning_rate / (1 - std::pow(beta1, steps))),
            .spread = static_cast<float>(1 / std::sqrt(1 - std::pow(beta2, steps))),
            .epsilon = static_cast<float>(epsilon)};
  }
};

}  // namespace rondo::inline v0
