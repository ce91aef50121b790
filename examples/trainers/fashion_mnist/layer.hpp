#pragma once

#include <Eigen/Core>
#include <cmath>
#include <random>
#include <span>
#include <type_traits>

namespace fashion_mnist {

/// A batch: one image, or what the layers before made of it, in each column.
template <class T>
using matrix = Eigen::MatrixX<T>;

/// A differentiable function of a batch. Pure: a layer keeps neither parameters nor activations, the net owns both.
template <class T>
class layer {
 public:
  virtual ~layer() = default;

  /// How many parameters the functions below are given.
  virtual Eigen::Index parameters() const noexcept { return 0; }

  /// How many outputs share its weights, which lie column by column, one column for each input, before a bias for each
  /// output; 0 without any.
  virtual Eigen::Index weight_rows() const noexcept { return 0; }

  /// Draws the first values of the parameters.
  virtual void initialise(std::span<T> /*parameters*/, std::mt19937_64& /*random*/) const {}

  /// y = f(parameters, x).
  virtual matrix<T> forward(std::span<T const> parameters, matrix<T> const& x) const = 0;

  /// Writes the derivative of the loss by the parameters, given dy, the derivative by y.
  virtual void parameter_gradient(std::span<T> /*gradient*/, matrix<T> const& /*x*/, matrix<T> const& /*dy*/) const {}

  /// The derivative of the loss by x.
  virtual matrix<T> input_gradient(std::span<T const> parameters, matrix<T> const& x, matrix<T> const& y,
                                   matrix<T> const& dy) const = 0;
};

/// Parameters of an affine map as they lie in the flat buffer: the weights column by column, then one bias an output.
/// T is float or double, const where the map only reads.
template <class T>
struct affine {
  using scalar = std::remove_const_t<T>;
  template <class M>
  using view = Eigen::Map<std::conditional_t<std::is_const_v<T>, M const, M>>;

  affine(std::span<T> flat, Eigen::Index outputs, Eigen::Index inputs)
      : weights(flat.data(), outputs, inputs), bias(flat.data() + outputs * inputs, outputs) {}

  view<matrix<scalar>> weights;
  view<Eigen::VectorX<scalar>> bias;
};

/// Uniform weights whose scale keeps the variance of the activations through rectifiers (He et al. 2015, eq. 10), and
/// zero biases. The draw is spelled out because the standard's distributions differ between standard libraries.
template <class T>
void initialise(affine<T> to, std::mt19937_64& random) {
  double const bound = std::sqrt(6.0 / static_cast<double>(to.weights.cols()));
  for (T& weight : to.weights.reshaped())
    weight = static_cast<T>(bound * (static_cast<double>(random() >> 11) * 0x1p-52 - 1.0));
  to.bias.setZero();
}

}  // namespace fashion_mnist
