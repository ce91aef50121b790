#pragma once

#include <rondo/collectives/request.hpp>
#include <rondo/communicator.hpp>

#include <string>

namespace rondo::inline v0 {

/// How many ranks work together in each way; the rest of the world divides the data.
struct grid_shape {
  int tensor = 1;    ///< ranks that divide every layer
  int pipeline = 1;  ///< stages that divide the layers
};

/// The ranks of a job in three dimensions, each with a communicator of the ranks that differ from this one in it alone.
///
/// Ranks that divide a layer talk most and are neighbours; those that divide the data come next, and stages last, as in
/// Megatron-LM (Narayanan et al. 2021, arXiv 2104.04473, section 3). Rank = tensor + t * (data + d * pipeline), with t
/// and d the extents of the first two.
template <transport X>
struct grid {
  /// Every rank must call; blocks until all have. Throws invalid_argument if the world does not divide.
  grid(communicator<X>& ranks, grid_shape shape) : grid(ranks, shape, extent_of_data(ranks.size(), shape)) {}

  communicator<X> tensor;    ///< rank: which part of each layer
  communicator<X> data;      ///< rank: which part of the data; the ranks whose gradients are added up
  communicator<X> pipeline;  ///< rank: which stage

 private:
  grid(communicator<X>& ranks, grid_shape shape, int d)
      : tensor(*ranks.split(ranks.rank() / shape.tensor)),
        data(*ranks.split(ranks.rank() % shape.tensor + ranks.rank() / (shape.tensor * d) * shape.tensor)),
        pipeline(*ranks.split(ranks.rank() % (shape.tensor * d))) {}

  static int extent_of_data(int ranks, grid_shape shape) {
    bool const fits = shape.tensor > 0 && shape.pipeline > 0 && ranks % (shape.tensor * shape.pipeline) == 0;
    collectives::require(fits, [&] {
      return std::to_string(ranks) + " ranks do not make a grid of " + std::to_string(shape.tensor) + " x " +
             std::to_string(shape.pipeline) + ": start a multiple of their product";
    });
    return ranks / (shape.tensor * shape.pipeline);
  }
};

}  // namespace rondo::inline v0
