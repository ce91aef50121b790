#pragma once

#include <rondo/cuda/launch.cuh>

#include <cuda_runtime.h>
#include <utility>

namespace rondo::inline v0::device {

/// Puts launches that come from several streams one after the other.
class launch_order {
 public:
  launch_order() { check(cudaEventCreateWithFlags(&last_, cudaEventDisableTiming), "creating an event"); }
  ~launch_order() { cudaEventDestroy(last_); }
  launch_order(launch_order const&) = delete;
  launch_order& operator=(launch_order const&) = delete;

  /// What is launched on `stream` next begins after what was launched on the stream before, which must still exist.
  void follow(cudaStream_t stream) {
    if (used_ && stream != stream_) {
      check(cudaEventRecord(last_, stream_), "recording an event");
      check(cudaStreamWaitEvent(stream, last_), "making a stream wait");
    }
    stream_ = stream;
    used_ = true;
  }

 private:
  cudaEvent_t last_{};
  cudaStream_t stream_{};
  bool used_ = false;
};

}  // namespace rondo::inline v0::device
