#pragma once

#include "layer.hpp"

namespace fashion_mnist {

/// y = max(x, 0), the rectifier.
template <class T>
class relu final : public layer<T> {
 public:
  matrix<T> forward(std::span<T const>, matrix<T> const& x) const override { return x.cwiseMax(T(0)); }

  matrix<T> input_gradient(std::span<T const>, matrix<T> const&, matrix<T> const& y,
                           matrix<T> const& dy) const override {
    return (y.array() > T(0)).select(dy, T(0));
  }
};

}  // namespace fashion_mnist
