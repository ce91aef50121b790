#pragma once

#include "layer.hpp"
#include "shape.hpp"

namespace fashion_mnist {

/// Keeps the greatest of every 2 x 2 pixels, channel by channel; an odd last row or column is left out.
template <class T>
class max_pool final : public layer<T> {
 public:
  explicit max_pool(shape in) : in_(in), out_{in.height / 2, in.width / 2, in.channels} {}

  shape out() const noexcept { return out_; }

  matrix<T> forward(std::span<T const>, matrix<T> const& x) const override {
    matrix<T> y(out_.size(), x.cols());
    for (Eigen::Index image = 0; image < x.cols(); ++image)
      for_each_greatest(x.col(image).data(),
                        [&, to = Eigen::Index(0)](Eigen::Index from) mutable { y(to++, image) = x(from, image); });
    return y;
  }

  matrix<T> input_gradient(std::span<T const>, matrix<T> const& x, matrix<T> const&,
                           matrix<T> const& dy) const override {
    matrix<T> dx = matrix<T>::Zero(x.rows(), x.cols());
    for (Eigen::Index image = 0; image < x.cols(); ++image)
      for_each_greatest(x.col(image).data(),
                        [&, from = Eigen::Index(0)](Eigen::Index to) mutable { dx(to, image) = dy(from++, image); });
    return dx;
  }

 private:
  /// Calls body(index of the greatest, the first among equals) for every number of the output, in its order.
  template <class Body>
  void for_each_greatest(T const* x, Body body) const {
    Eigen::Index const right = in_.channels, down = in_.width * in_.channels;
    auto const greater = [x](Eigen::Index a, Eigen::Index b) { return x[b] > x[a] ? b : a; };
    for (Eigen::Index row = 0; row < out_.height; ++row)
      for (Eigen::Index column = 0; column < out_.width; ++column)
        for (Eigen::Index channel = 0; channel < out_.channels; ++channel) {
          Eigen::Index const corner = 2 * row * down + 2 * column * right + channel;
          body(greater(greater(corner, corner + right), greater(corner + down, corner + down + right)));
        }
  }

  shape in_, out_;
};

}  // namespace fashion_mnist
