#pragma once

#include "spirals.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

namespace nccl_style {

/// A perceptron with one hidden layer of tanh and a softmax over the arms. All parameters lie in one array, in the
/// order of the gradients that backward() adds up.
class net {
 public:
  static constexpr std::size_t hidden = 32;
  static constexpr std::size_t parameters = hidden * 3 + arms * (hidden + 1);

  std::vector<double> weights = std::vector<double>(parameters);

  /// Other weights for every seed.
  void initialize(std::uint64_t seed) {
    for (std::size_t i = 0; i < parameters; ++i) weights[i] = 2 * uniform(seed * parameters + i) - 1;
  }

  /// Adds the gradient of the loss of one sample, and returns this loss.
  double backward(sample const& s, std::vector<double>& gradients) const {
    std::array<double, hidden> h;
    for (std::size_t j = 0; j < hidden; ++j)
      h[j] = std::tanh(weights[3 * j] * s.x + weights[3 * j + 1] * s.y + weights[3 * j + 2]);
    std::array<double, arms> p;
    for (std::size_t a = 0; a < arms; ++a) {
      p[a] = weights[output(a) + hidden];
      for (std::size_t j = 0; j < hidden; ++j) p[a] += weights[output(a) + j] * h[j];
    }
    double const most = *std::max_element(p.begin(), p.end());
    double total = 0;
    for (auto& value : p) total += value = std::exp(value - most);
    for (auto& value : p) value /= total;
    double const loss = -std::log(p[static_cast<std::size_t>(s.arm)]);

    std::array<double, hidden> back{};
    for (std::size_t a = 0; a < arms; ++a) {
      double const error = p[a] - (static_cast<int>(a) == s.arm);
      for (std::size_t j = 0; j < hidden; ++j) {
        gradients[output(a) + j] += error * h[j];
        back[j] += error * weights[output(a) + j];
      }
      gradients[output(a) + hidden] += error;
    }
    for (std::size_t j = 0; j < hidden; ++j) {
      double const error = back[j] * (1 - h[j] * h[j]);
      gradients[3 * j] += error * s.x;
      gradients[3 * j + 1] += error * s.y;
      gradients[3 * j + 2] += error;
    }
    return loss;
  }

 private:
  static constexpr std::size_t output(std::size_t arm) { return hidden * 3 + arm * (hidden + 1); }
};

}  // namespace nccl_style
