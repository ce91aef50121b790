#pragma once

#include <rondo/cuda/board.hpp>
#include <rondo/cuda/launch.cuh>

#include <atomic>
#include <cuda_runtime.h>
#include <new>

namespace rondo::inline v0::device {

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
