#pragma once

#include "../fashion_mnist/softmax.hpp"
#include "config.hpp"
#include "layout.hpp"
#include "normalisation.hpp"

#include <cstdint>
#include <utility>

namespace transformer {

/// Columns become a guess at the next token. Its weights are its own, where GPT-2 takes those of the embedding, so that
/// the first and the last stage of a pipeline share nothing.
template <class T>
class head {
 public:
  explicit head(config const& c)
      : layout_({{"norm.gain", c.width, 1, 0, 1}, {"norm.bias", c.width}, {"weight", c.vocabulary, c.width, 0.02}}) {}

  struct memory {
    normalised<T> norm;
    matrix<T> in, slope;  // slope: the derivative by the logits
  };

  layout const& parameters() const noexcept { return layout_; }

  /// The cross entropy with the tokens that did follow, summed over all positions.
  T forward(std::span<T const> w, matrix<T> const& x, std::span<std::uint8_t const> next, memory& kept) const {
    kept.in = normalise(x, layout_(w, 0).col(0), layout_(w, 1).col(0), kept.norm);
    auto [loss, slope] = fashion_mnist::softmax_cross_entropy<T>(layout_(w, 2) * kept.in, next);
    kept.slope = std::move(slope);
    return loss;
  }

  /// The derivative of the loss by x. Adds to the gradient `dw`.
  matrix<T> backward(std::span<T const> w, std::span<T> dw, memory const& kept) const {
    layout_(dw, 2).noalias() += kept.slope * kept.in.transpose();
    matrix<T> const d = layout_(w, 2).transpose() * kept.slope;
    auto gain = layout_(dw, 0), bias = layout_(dw, 1);
    return normalise_back(d, layout_(w, 0).col(0), kept.norm, gain.col(0), bias.col(0));
  }

 private:
  layout layout_;
};

}  // namespace transformer
