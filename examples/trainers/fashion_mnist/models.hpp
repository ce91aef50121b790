#pragma once

#include "convolution.hpp"
#include "linear.hpp"
#include "max_pool.hpp"
#include "net.hpp"
#include "relu.hpp"

namespace fashion_mnist {

/// 784 - 128 - 10, fully connected: 101,770 parameters.
template <class T>
net<T> mlp(std::uint64_t seed) {
  return net<T>(seed, linear<T>(784, 128), relu<T>(), linear<T>(128, 10));
}

/// Two convolutions of 3 x 3 with 16 and 32 channels, each pooled and rectified, and a linear classifier: 12,810
/// parameters.
template <class T>
net<T> conv(std::uint64_t seed) {
  convolution<T> const edges({28, 28, 1}, 3, 16);
  max_pool<T> const edges_pool(edges.out());
  convolution<T> const shapes(edges_pool.out(), 3, 32);
  max_pool<T> const shapes_pool(shapes.out());
  linear<T> const classifier(shapes_pool.out().size(), 10);
  return net<T>(seed, edges, edges_pool, relu<T>(), shapes, shapes_pool, relu<T>(), classifier);
}

}  // namespace fashion_mnist
