#pragma once

#include <rondo/config.hpp>

#include <cmath>

namespace rondo::inline v0 {

/// What to multiply all gradients with so that their global L2 norm is at most `max_norm`:
///
///   min(1, max_norm / (norm + 1e-6)), norm = sqrt(sum_of_squares),
///
/// as torch.nn.utils.clip_grad_norm_ does. The sum is one over all gradients of the model; it must be finite, which is
/// is_finite()'s to say: no factor makes a finite gradient of an infinite one.
RONDO_HD inline float clip_factor(double sum_of_squares, double max_norm) noexcept {
  double const factor = max_norm / (std::sqrt(sum_of_squares) + 1e-6);
  return factor < 1 ? static_cast<float>(factor) : 1.0F;
}

}  // namespace rondo::inline v0
