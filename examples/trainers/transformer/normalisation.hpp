#pragma once

#include "layout.hpp"

namespace transformer {

/// What a layer normalisation remembers for its way back.
template <class T>
struct normalised {
  matrix<T> value;               ///< columns of mean 0 and variance 1
  Eigen::RowVectorX<T> inverse;  ///< 1 / standard deviation of each column
};

/// y = gain * (x - mean) / deviation + bias, column by column (Ba, Kiros, Hinton 2016).
template <class T, class Gain, class Bias>
matrix<T> normalise(matrix<T> const& x, Gain const& gain, Bias const& bias, normalised<T>& kept) {
  kept.value = x.rowwise() - x.colwise().mean();
  kept.inverse = (kept.value.array().square().colwise().mean() + T(1e-5)).sqrt().inverse();
  kept.value = kept.value * kept.inverse.asDiagonal();
  return (gain.asDiagonal() * kept.value).colwise() + bias;
}

/// The derivative by x, given that by y; adds those by gain and bias.
template <class T, class Gain, class Slope>
matrix<T> normalise_back(matrix<T> const& dy, Gain const& gain, normalised<T> const& kept, Slope dgain, Slope dbias) {
  dgain += dy.cwiseProduct(kept.value).rowwise().sum();
  dbias += dy.rowwise().sum();
  matrix<T> const d = gain.asDiagonal() * dy;
  Eigen::RowVectorX<T> const mean = d.colwise().mean(), along = d.cwiseProduct(kept.value).colwise().mean();
  return ((d - kept.value * along.asDiagonal()).rowwise() - mean) * kept.inverse.asDiagonal();
}

}  // namespace transformer
