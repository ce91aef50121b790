#pragma once

#include "layer.hpp"

namespace fashion_mnist {

/// y = W x + b, fully connected.
template <class T>
class linear final : public layer<T> {
 public:
  linear(Eigen::Index inputs, Eigen::Index outputs) : inputs_(inputs), outputs_(outputs) {}

  Eigen::Index parameters() const noexcept override { return outputs_ * (inputs_ + 1); }

  Eigen::Index weight_rows() const noexcept override { return outputs_; }

  void initialise(std::span<T> parameters, std::mt19937_64& random) const override {
    fashion_mnist::initialise(affine<T>(parameters, outputs_, inputs_), random);
  }

  matrix<T> forward(std::span<T const> parameters, matrix<T> const& x) const override {
    affine<T const> const p(parameters, outputs_, inputs_);
    return (p.weights * x).colwise() + p.bias;
  }

  void parameter_gradient(std::span<T> gradient, matrix<T> const& x, matrix<T> const& dy) const override {
    affine<T> g(gradient, outputs_, inputs_);
    g.weights.noalias() = dy * x.transpose();
    g.bias = dy.rowwise().sum();
  }

  matrix<T> input_gradient(std::span<T const> parameters, matrix<T> const&, matrix<T> const&,
                           matrix<T> const& dy) const override {
    return affine<T const>(parameters, outputs_, inputs_).weights.transpose() * dy;
  }

 private:
  Eigen::Index inputs_, outputs_;
};

}  // namespace fashion_mnist
