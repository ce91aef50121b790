#pragma once

#include "attention.hpp"
#include "config.hpp"
#include "layout.hpp"
#include "normalisation.hpp"

#include <cmath>
#include <vector>

namespace transformer {

/// x + attention(normalised x), then x + perceptron(normalised x), as in GPT-2 (Radford et al. 2019, section 2.3).
///
/// Pure: parameters and what is kept between forward() and backward() are the caller's, so that a stage of a pipeline
/// can have several batches on their way.
template <class T>
class block {
 public:
  explicit block(config const& c)
      : layout_({{"attention.norm.gain", c.width, 1, 0, 1},
                 {"attention.norm.bias", c.width},
                 {"attention.in.weight", 3 * c.width, c.width, 0.02},
                 {"attention.in.bias", 3 * c.width},
                 {"attention.out.weight", c.width, c.width, residual(c)},
                 {"attention.out.bias", c.width},
                 {"perceptron.norm.gain", c.width, 1, 0, 1},
                 {"perceptron.norm.bias", c.width},
                 {"perceptron.in.weight", 4 * c.width, c.width, 0.02},
                 {"perceptron.in.bias", 4 * c.width},
                 {"perceptron.out.weight", c.width, 4 * c.width, residual(c)},
                 {"perceptron.out.bias", c.width}}),
        attention_(c.width, c.heads, c.time) {}

  struct memory {
    normalised<T> attention_norm, perceptron_norm;
    matrix<T> attention_in, qkv, attended, perceptron_in, before, after;  // before and after the rectifier
    std::vector<matrix<T>> weights;
  };

  layout const& parameters() const noexcept { return layout_; }

  matrix<T> forward(std::span<T const> w, matrix<T> x, memory& kept) const {
    kept.attention_in = normalise(x, vector(w, 0), vector(w, 1), kept.attention_norm);
    kept.qkv = (layout_(w, 2) * kept.attention_in).colwise() + vector(w, 3);
    kept.attended = attention_.forward(kept.qkv, kept.weights);
    x.noalias() += layout_(w, 4) * kept.attended;
    x.colwise() += vector(w, 5);
    kept.perceptron_in = normalise(x, vector(w, 6), vector(w, 7), kept.perceptron_norm);
    kept.before = (layout_(w, 8) * kept.perceptron_in).colwise() + vector(w, 9);
    kept.after = kept.before.unaryExpr(&gelu);
    x.noalias() += layout_(w, 10) * kept.after;
    x.colwise() += vector(w, 11);
    return x;
  }

  /// The derivative by x, given that by the result of forward(). Adds to the gradient `dw`.
  matrix<T> backward(std::span<T const> w, std::span<T> dw, matrix<T> dy, memory const& kept) const {
    affine_back(dw, 10, dy, kept.after);
    matrix<T> d = layout_(w, 10).transpose() * dy;
    d = d.cwiseProduct(kept.before.unaryExpr(&gelu_slope));
    affine_back(dw, 8, d, kept.perceptron_in);
    d = (layout_(w, 8).transpose() * d).eval();
    dy += normalise_back(d, vector(w, 6), kept.perceptron_norm, vector(dw, 6), vector(dw, 7));

    affine_back(dw, 4, dy, kept.attended);
    d = attention_.backward(layout_(w, 4).transpose() * dy, kept.qkv, kept.weights);
    affine_back(dw, 2, d, kept.attention_in);
    d = (layout_(w, 2).transpose() * d).eval();
    dy += normalise_back(d, vector(w, 0), kept.attention_norm, vector(dw, 0), vector(dw, 1));
    return dy;
  }

 private:
  /// Sums of many residuals keep their variance.
  static double residual(config const& c) { return 0.02 / std::sqrt(2 * static_cast<double>(c.blocks)); }

  template <class U>
  auto vector(std::span<U> all, std::size_t i) const noexcept {
    auto const flat = layout_.flat(all, i);
    using column = Eigen::VectorX<T>;
    return Eigen::Map<std::conditional_t<std::is_const_v<U>, column const, column>>(flat.data(), std::ssize(flat));
  }

  /// Adds the derivatives by weights, tensor number i, and bias, the next one, of y = W x + b.
  void affine_back(std::span<T> dw, std::size_t i, matrix<T> const& dy, matrix<T> const& x) const {
    layout_(dw, i).noalias() += dy * x.transpose();
    vector(dw, i + 1) += dy.rowwise().sum();
  }

  /// x times the normal distribution function, by its approximation with tanh (Hendrycks, Gimpel 2016, section 2).
  static T gelu(T x) { return T(0.5) * x * (1 + std::tanh(inner(x))); }
  static T gelu_slope(T x) {
    T const t = std::tanh(inner(x));
    return T(0.5) * (1 + t) + T(0.5) * x * (1 - t * t) * factor * (1 + 3 * cubic * x * x);
  }
  static T inner(T x) { return factor * (x + cubic * x * x * x); }
  static constexpr T factor = T(0.7978845608028654), cubic = T(0.044715);  // sqrt(2 / pi)

  layout layout_;
  attention<T> attention_;
};

}  // namespace transformer
