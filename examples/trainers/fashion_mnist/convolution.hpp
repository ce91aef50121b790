#pragma once

#include "layer.hpp"
#include "shape.hpp"

#include <algorithm>

namespace fashion_mnist {

/// Slides a square of `side` pixels over the image, without a border: `channels` numbers for every place it fits.
///
/// As a matrix product: the patches under the square become the columns of a matrix (Chellapilla et al. 2006). With the
/// channels of a pixel side by side, one row of a patch is one contiguous run, and the product is the next image as is.
template <class T>
class convolution final : public layer<T> {
 public:
  convolution(shape in, Eigen::Index side, Eigen::Index channels)
      : in_(in), out_{in.height - side + 1, in.width - side + 1, channels}, side_(side) {}

  shape out() const noexcept { return out_; }

  Eigen::Index parameters() const noexcept override { return out_.channels * (patch() + 1); }

  Eigen::Index weight_rows() const noexcept override { return out_.channels; }

  void initialise(std::span<T> parameters, std::mt19937_64& random) const override {
    fashion_mnist::initialise(affine<T>(parameters, out_.channels, patch()), random);
  }

  matrix<T> forward(std::span<T const> parameters, matrix<T> const& x) const override {
    affine<T const> const p(parameters, out_.channels, patch());
    matrix<T> y(out_.size(), x.cols()), patches(patch(), places());
    for (Eigen::Index image = 0; image < x.cols(); ++image) {
      gather(x.col(image).data(), patches);
      pixels(y, image).noalias() = p.weights * patches;
      pixels(y, image).colwise() += p.bias;
    }
    return y;
  }

  void parameter_gradient(std::span<T> gradient, matrix<T> const& x, matrix<T> const& dy) const override {
    affine<T> g(gradient, out_.channels, patch());
    g.weights.setZero();
    g.bias.setZero();
    matrix<T> patches(patch(), places());
    for (Eigen::Index image = 0; image < x.cols(); ++image) {
      gather(x.col(image).data(), patches);
      g.weights.noalias() += pixels(dy, image) * patches.transpose();
      g.bias += pixels(dy, image).rowwise().sum();
    }
  }

  matrix<T> input_gradient(std::span<T const> parameters, matrix<T> const& x, matrix<T> const&,
                           matrix<T> const& dy) const override {
    affine<T const> const p(parameters, out_.channels, patch());
    matrix<T> dx = matrix<T>::Zero(x.rows(), x.cols()), patches(patch(), places());
    for (Eigen::Index image = 0; image < x.cols(); ++image) {
      patches.noalias() = p.weights.transpose() * pixels(dy, image);
      for_each_run([&](Eigen::Index pixel, Eigen::Index offset, Eigen::Index place) {
        dx.col(image).segment(pixel, run()) += patches.col(place).segment(offset, run());
      });
    }
    return dx;
  }

 private:
  Eigen::Index run() const noexcept { return side_ * in_.channels; }
  Eigen::Index patch() const noexcept { return side_ * run(); }
  Eigen::Index places() const noexcept { return out_.height * out_.width; }

  /// One image of the output as channels x places.
  auto pixels(matrix<T>& y, Eigen::Index image) const {
    return Eigen::Map<matrix<T>>(y.col(image).data(), out_.channels, places());
  }
  auto pixels(matrix<T> const& y, Eigen::Index image) const {
    return Eigen::Map<matrix<T> const>(y.col(image).data(), out_.channels, places());
  }

  /// Calls body(where the run starts in the image, where in the patch, which patch) for every row of every patch.
  template <class Body>
  void for_each_run(Body body) const {
    for (Eigen::Index place = 0; place < places(); ++place)
      for (Eigen::Index row = 0; row < side_; ++row)
        body(((place / out_.width + row) * in_.width + place % out_.width) * in_.channels, row * run(), place);
  }

  void gather(T const* image, matrix<T>& patches) const {
    for_each_run([&](Eigen::Index pixel, Eigen::Index offset, Eigen::Index place) {
      std::copy_n(image + pixel, run(), patches.col(place).data() + offset);
    });
  }

  shape in_, out_;
  Eigen::Index side_;
};

}  // namespace fashion_mnist
