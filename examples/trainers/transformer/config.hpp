#pragma once

#include <Eigen/Core>

namespace transformer {

/// The shape of the net. GPT-2's smallest has 50257, 1024, 768, 12, 12 (Radford et al. 2019, table 2).
struct config {
  Eigen::Index vocabulary = 256;  ///< tokens are bytes
  Eigen::Index time = 64;         ///< positions of a sequence
  Eigen::Index width = 64;        ///< numbers that the net knows about a position
  Eigen::Index heads = 4;         ///< must divide the width
  Eigen::Index blocks = 2;
};

}  // namespace transformer
