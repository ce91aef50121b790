#pragma once

#include "layer.hpp"

#include <cstdint>
#include <utility>

namespace fashion_mnist {

/// Cross entropy of the softmax of each column with its label, summed over the batch, and its derivative by the logits.
template <class T>
std::pair<T, matrix<T>> softmax_cross_entropy(matrix<T> logits, std::span<std::uint8_t const> labels) {
  T loss = 0;
  for (Eigen::Index image = 0; image < logits.cols(); ++image) {
    auto column = logits.col(image);
    auto const label = static_cast<Eigen::Index>(labels[static_cast<std::size_t>(image)]);
    column.array() -= column.maxCoeff();
    T const log_sum = std::log(column.array().exp().sum());
    loss += log_sum - column[label];
    column = (column.array() - log_sum).exp();
    column[label] -= T(1);
  }
  return {loss, std::move(logits)};
}

/// In how many columns the greatest logit is the one of the label.
template <class T>
std::size_t count_correct(matrix<T> const& logits, std::span<std::uint8_t const> labels) {
  std::size_t correct = 0;
  for (Eigen::Index image = 0; image < logits.cols(); ++image) {
    Eigen::Index guess;
    logits.col(image).maxCoeff(&guess);
    if (guess == static_cast<Eigen::Index>(labels[static_cast<std::size_t>(image)])) ++correct;
  }
  return correct;
}

}  // namespace fashion_mnist
