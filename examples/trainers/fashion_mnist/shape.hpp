#pragma once

#include <Eigen/Core>

namespace fashion_mnist {

/// Height, width and channels of an image. The channels of one pixel lie side by side, then the next pixel of the row.
struct shape {
  Eigen::Index height, width, channels;

  constexpr Eigen::Index size() const noexcept { return height * width * channels; }
};

}  // namespace fashion_mnist
