#pragma once

#include "config.hpp"
#include "layout.hpp"

#include <cstdint>

namespace transformer {

/// Tokens become columns: a vector that belongs to the token and one that belongs to its place in the sequence.
template <class T>
class embedding {
 public:
  explicit embedding(config const& c)
      : layout_({{"token", c.width, c.vocabulary, 0.02}, {"position", c.width, c.time, 0.02}}), time_(c.time) {}

  layout const& parameters() const noexcept { return layout_; }

  matrix<T> forward(std::span<T const> w, std::span<std::uint8_t const> tokens) const {
    auto const token = layout_(w, 0), position = layout_(w, 1);
    matrix<T> y(token.rows(), static_cast<Eigen::Index>(tokens.size()));
    for (Eigen::Index i = 0; i < y.cols(); ++i)
      y.col(i) = token.col(tokens[static_cast<std::size_t>(i)]) + position.col(i % time_);
    return y;
  }

  /// Adds to the gradient `dw`.
  void backward(std::span<T> dw, matrix<T> const& dy, std::span<std::uint8_t const> tokens) const {
    auto token = layout_(dw, 0), position = layout_(dw, 1);
    for (Eigen::Index i = 0; i < dy.cols(); ++i) {
      token.col(tokens[static_cast<std::size_t>(i)]) += dy.col(i);
      position.col(i % time_) += dy.col(i);
    }
  }

 private:
  layout layout_;
  Eigen::Index time_;
};

}  // namespace transformer
