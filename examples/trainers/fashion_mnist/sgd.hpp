#pragma once

#include <Eigen/Core>
#include <span>

namespace fashion_mnist {

/// Stochastic gradient descent with momentum: velocity = momentum * velocity + gradient, parameters -= rate * velocity.
template <class T>
class sgd {
 public:
  sgd(double rate, double momentum) : rate_(static_cast<T>(rate)), momentum_(static_cast<T>(momentum)) {}

  void update(std::span<T> parameters, std::span<T const> gradient) {
    auto const size = static_cast<Eigen::Index>(parameters.size());
    if (velocity_.size() != size) velocity_ = Eigen::VectorX<T>::Zero(size);
    velocity_ = momentum_ * velocity_ + Eigen::Map<Eigen::VectorX<T> const>(gradient.data(), size);
    Eigen::Map<Eigen::VectorX<T>>(parameters.data(), size) -= rate_ * velocity_;
  }

 private:
  T rate_, momentum_;
  Eigen::VectorX<T> velocity_;
};

}  // namespace fashion_mnist
