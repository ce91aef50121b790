#pragma once

#include <rondo/cuda/board.hpp>
#include <rondo/cuda/launch.cuh>

#include <cstddef>
#include <cuda_runtime.h>
#include <memory>

namespace rondo::inline v0::device {

/// What a rank lends to its peers: device memory, zeroed when the constructor returns, before anybody can see it.
///
/// Peers let go of it first: destroy it when all ranks have synchronised after their last call.
class arena {
 public:
  explicit arena(int ranks, arena_shape const& shape = {}) : shape_(shape) {
    shape.check(ranks);
    void* place = nullptr;
    check(cudaMalloc(&place, shape.bytes(ranks)), "allocating an arena");
    data_.reset(static_cast<std::byte*>(place));
    check(cudaMemset(place, 0, shape.bytes(ranks)), "clearing an arena");
    check(cudaDeviceSynchronize(), "clearing an arena");
  }

  std::byte* data() const noexcept { return data_.get(); }
  arena_shape const& shape() const noexcept { return shape_; }

 private:
  struct release {
    void operator()(std::byte* data) const noexcept { cudaFree(data); }
  };

  arena_shape shape_;
  std::unique_ptr<std::byte, release> data_;
};

}  // namespace rondo::inline v0::device
