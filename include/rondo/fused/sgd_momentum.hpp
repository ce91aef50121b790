#pragma once

#include <rondo/config.hpp>

#include <cstddef>
#include <cstdint>

namespace rondo::inline v0 {

/// Stochastic gradient descent with momentum, as torch.optim.SGD without dampening:
///
///   slope    = gradient + decay weight
///   velocity = momentum velocity + slope
///   weight   = weight - rate (nesterov ? slope + momentum velocity : velocity)
///
/// Nesterov's form is that of Sutskever et al., On the importance of initialization and momentum in deep learning, ICML
/// 2013, section 2. An optimizer: `velocity` is its only moment, 0 at first.
struct sgd_momentum {
  static constexpr std::size_t moments = 1;

  double learning_rate = 1e-2;
  double momentum = 0.9;
  double weight_decay = 0;
  bool nesterov = false;

  /// One step, its factors rounded to float.
  struct update {
    static constexpr bool in_lanes = true;

    float rate, momentum, decay;
    bool nesterov;

    template <class F>
    [[gnu::always_inline]] RONDO_HD void operator()(F const& gradient, F& weight, F& velocity) const noexcept {
      F const slope = gradient + decay * weight;
      velocity = momentum * velocity + slope;
      F direction = velocity;
      if (nesterov) direction = slope + momentum * velocity;
      weight = weight - rate * direction;
    }
  };

  RONDO_HD update at(std::uint64_t) const noexcept {
    return {.rate = static_cast<float>(learning_rate),
            .momentum = static_cast<float>(momentum),
            .decay = static_cast<float>(weight_decay),
            .nesterov = nesterov};
  }
};

}  // namespace rondo::inline v0
