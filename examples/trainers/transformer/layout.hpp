#pragma once

#include "../fashion_mnist/layer.hpp"

#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace transformer {

/// A column for each position of each sequence, one sequence after the other; rows are what the net knows about it.
using fashion_mnist::matrix;

/// One tensor of a part: a matrix, or a vector of one column.
struct tensor {
  std::string name;
  Eigen::Index rows, columns = 1;
  double deviation = 0;  ///< of its first values, drawn from a normal distribution around
  double mean = 0;

  std::size_t count() const noexcept { return static_cast<std::size_t>(rows * columns); }
};

/// How the tensors of a part of the net lie in one flat buffer, of values or of gradients: one behind the other.
class layout {
 public:
  explicit layout(std::vector<tensor> tensors) : tensors_(std::move(tensors)) {
    for (tensor const& t : tensors_) offsets_.push_back(offsets_.back() + t.count());
  }

  std::vector<tensor> const& tensors() const noexcept { return tensors_; }
  std::size_t count() const noexcept { return offsets_.back(); }

  template <class T>
  std::span<T> flat(std::span<T> all, std::size_t i) const noexcept {
    return all.subspan(offsets_[i], offsets_[i + 1] - offsets_[i]);
  }

  /// Tensor number i of a buffer.
  template <class T>
  auto operator()(std::span<T> all, std::size_t i) const noexcept {
    return Eigen::Map<matrix<T>>(flat(all, i).data(), tensors_[i].rows, tensors_[i].columns);
  }
  template <class T>
  auto operator()(std::span<T const> all, std::size_t i) const noexcept {
    return Eigen::Map<matrix<T> const>(flat(all, i).data(), tensors_[i].rows, tensors_[i].columns);
  }

  /// Draws the first values. Spelled out (Box, Muller 1958) because the standard's distributions differ between
  /// standard libraries.
  template <class T>
  void initialise(std::span<T> all, std::mt19937_64& random) const {
    auto const uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      for (T& value : flat(all, i)) {
        double const radius = tensors_[i].deviation == 0 ? 0 : std::sqrt(-2 * std::log(uniform()));
        double const drawn = radius == 0 ? 0 : radius * std::cos(6.283185307179586 * uniform());
        value = static_cast<T>(tensors_[i].mean + tensors_[i].deviation * drawn);
      }
  }

 private:
  std::vector<tensor> tensors_;
  std::vector<std::size_t> offsets_{0};
};

}  // namespace transformer
