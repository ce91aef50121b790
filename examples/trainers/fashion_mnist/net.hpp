#pragma once

#include "layer.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace fashion_mnist {

/// A chain of layers. All parameters lie in one buffer, in the order of the layers, and so do all gradients.
template <class T>
class net {
 public:
  template <class... Layers>
  explicit net(std::uint64_t seed, Layers... layers) {
    (layers_.push_back(std::make_unique<Layers>(std::move(layers))), ...);
    for (auto const& layer : layers_)
      offsets_.push_back(offsets_.back() + static_cast<std::size_t>(layer->parameters()));
    parameters_.resize(offsets_.back());
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < layers_.size(); ++i) layers_[i]->initialise(part(parameters(), i), random);
  }

  std::span<T> parameters() noexcept { return parameters_; }
  std::span<T const> parameters() const noexcept { return parameters_; }

  /// The outputs for a batch: one column an image. Remembered, with everything between, for backward().
  matrix<T> const& forward(matrix<T> images) {
    activations_ = {std::move(images)};
    for (std::size_t i = 0; i < layers_.size(); ++i)
      activations_.push_back(layers_[i]->forward(part(parameters(), i), activations_.back()));
    return activations_.back();
  }

  std::size_t layers() const noexcept { return layers_.size(); }

  /// The shape of a layer's weights, row by row, at its first parameter; 0 x 0 if it has none.
  std::pair<std::size_t, std::size_t> weights(std::size_t layer) const noexcept {
    auto const columns = static_cast<std::size_t>(layers_[layer]->weight_rows());
    return {columns == 0 ? 0 : (offsets_[layer + 1] - offsets_[layer]) / columns - 1, columns};
  }

  /// What belongs to a layer, of all parameters or of all gradients.
  template <class U>
  std::span<U> part(std::span<U> all, std::size_t layer) const noexcept {
    return all.subspan(offsets_[layer], offsets_[layer + 1] - offsets_[layer]);
  }

  /// Writes the derivative of the loss by every parameter, given `slope`, the derivative by the outputs of forward().
  /// Calls ready(layer) as soon as that of a layer is complete, the last layer first.
  void backward(
      matrix<T> slope, std::span<T> gradient,
      std::function<void(std::size_t)> const& ready = [](std::size_t) {}) const {
    for (std::size_t i = layers_.size(); i-- > 0;) {
      layers_[i]->parameter_gradient(part(gradient, i), activations_[i], slope);
      ready(i);
      if (i > 0) slope = layers_[i]->input_gradient(part(parameters(), i), activations_[i], activations_[i + 1], slope);
    }
  }

 private:
  std::vector<std::unique_ptr<layer<T>>> layers_;
  std::vector<std::size_t> offsets_{0};
  std::vector<T> parameters_;
  std::vector<matrix<T>> activations_;
};

}  // namespace fashion_mnist
