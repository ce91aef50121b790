#pragma once

#include "layout.hpp"

#include <cmath>
#include <limits>
#include <vector>

namespace transformer {

/// Causal attention of several heads (Vaswani et al. 2017, section 3.2). A column of `qkv` has the queries of all
/// heads, then their keys, then their values; the sequences have `time` columns each.
template <class T>
class attention {
 public:
  attention(Eigen::Index width, Eigen::Index heads, Eigen::Index time)
      : width_(width), heads_(heads), size_(width / heads), time_(time),
        scale_(T(1) / std::sqrt(static_cast<T>(size_))) {}

  /// Keeps the weights of each sequence and head: column t has those that position t gives to positions 0 … t.
  matrix<T> forward(matrix<T> const& qkv, std::vector<matrix<T>>& weights) const {
    matrix<T> y(width_, qkv.cols());
    weights.clear();
    each(qkv.cols(), [&](Eigen::Index h, Eigen::Index s) {
      matrix<T> p = scale_ * key(qkv, h, s).transpose() * query(qkv, h, s);
      for (Eigen::Index t = 0; t < time_; ++t) {
        auto seen = p.col(t).head(t + 1);
        seen = (seen.array() - seen.maxCoeff()).exp();
        seen /= seen.sum();
        p.col(t).tail(time_ - t - 1).setZero();
      }
      y.block(h * size_, s, size_, time_).noalias() = value(qkv, h, s) * p;
      weights.push_back(std::move(p));
    });
    return y;
  }

  /// The derivative by qkv, given that by y.
  matrix<T> backward(matrix<T> const& dy, matrix<T> const& qkv, std::vector<matrix<T>> const& weights) const {
    matrix<T> d(qkv.rows(), qkv.cols());
    std::size_t i = 0;
    each(qkv.cols(), [&](Eigen::Index h, Eigen::Index s) {
      matrix<T> const& p = weights[i++];
      auto const slope = dy.block(h * size_, s, size_, time_);
      value(d, h, s).noalias() = slope * p.transpose();
      matrix<T> score = value(qkv, h, s).transpose() * slope;
      Eigen::RowVectorX<T> const along = p.cwiseProduct(score).colwise().sum();
      score = scale_ * p.cwiseProduct(score.rowwise() - along);
      query(d, h, s).noalias() = key(qkv, h, s) * score;
      key(d, h, s).noalias() = query(qkv, h, s) * score.transpose();
    });
    return d;
  }

 private:
  template <class M>
  auto query(M& m, Eigen::Index head, Eigen::Index first) const {
    return m.block(head * size_, first, size_, time_);
  }
  template <class M>
  auto key(M& m, Eigen::Index head, Eigen::Index first) const {
    return m.block(width_ + head * size_, first, size_, time_);
  }
  template <class M>
  auto value(M& m, Eigen::Index head, Eigen::Index first) const {
    return m.block(2 * width_ + head * size_, first, size_, time_);
  }

  /// Calls body(head, first column of the sequence).
  template <class Body>
  void each(Eigen::Index columns, Body body) const {
    for (Eigen::Index s = 0; s < columns; s += time_)
      for (Eigen::Index h = 0; h < heads_; ++h) body(h, s);
  }

  Eigen::Index width_, heads_, size_, time_;
  T scale_;
};

}  // namespace transformer
