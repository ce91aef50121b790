#pragma once

#include <rondo/cuda/board.hpp>
#include <rondo/cuda/launch.cuh>
#include <rondo/error.hpp>

#include <atomic>
#include <cstddef>
#include <cuda_runtime.h>
#include <memory>
#include <new>

namespace rondo::inline v0::device {

/// What a rank lends to its peers: device memory, zeroed when the constructor returns, before anybody can see it.
///
/// Peers let go of it first: destroy it when all ranks have synchronised after their last call.
class arena {
 public:
  explicit arena(int ranks, arena_shape const& shape = {}) : shape_(shape) {
    if (!shape.fits(ranks))
      throw invalid_argument("an arena has 1 to 64 blocks, slots in a power of two, and windows of at least 16 KiB for "
                             "each rank: give it another shape");
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

/// A fault in memory that host and device share.
class report {
 public:
  report() {
    void* place = nullptr;
    check(cudaHostAlloc(&place, sizeof(fault), cudaHostAllocMapped | cudaHostAllocPortable), "allocating a report");
    shared_ = new (place) fault;
  }
  ~report() { cudaFreeHost(shared_); }
  report(report const&) = delete;
  report& operator=(report const&) = delete;

  fault const& on_host() const noexcept { return *shared_; }
  fault* on_device() const {
    void* place = nullptr;
    check(cudaHostGetDevicePointer(&place, shared_, 0), "mapping a report");
    return static_cast<fault*>(place);
  }

  flag raised() const noexcept { return std::atomic_ref<flag>(shared_->raised).load(std::memory_order_acquire); }
  void raise(flag why) noexcept { std::atomic_ref<flag>(shared_->raised).store(why, std::memory_order_relaxed); }

 private:
  fault* shared_;
};

}  // namespace rondo::inline v0::device
