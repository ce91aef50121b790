#pragma once

#include <rondo/cuda/board.hpp>

#include <cstdint>
#include <cuda/atomic>

namespace rondo::inline v0::device {

/// A thread's view of itself on a GPU: where it is in its block and its grid, how it meets the others, and how it gets
/// at what other GPUs get at too. Every such access has the scope of the system.
///
/// A test has one of its own, for threads of the processor: all that kernels do beyond C++ goes through these calls.
class context {
 public:
  /// Block `number` of the `blocks` that its rank has. `scratch` is shared memory, see scratch_count().
  __device__ context(unsigned number, unsigned blocks, double* scratch)
      : number_(number), blocks_(blocks), scratch_(scratch) {}

  __device__ unsigned thread() const { return threadIdx.x; }
  __device__ unsigned threads() const { return blockDim.x; }
  __device__ unsigned block() const { return number_; }
  __device__ unsigned blocks() const { return blocks_; }
  __device__ double* scratch() const { return scratch_; }

  /// All threads of the block have come, and see what the others have done before.
  __device__ void sync() const { __syncthreads(); }
  /// The same; true if all said yes.
  __device__ bool sync_and(bool yes) const { return __syncthreads_and(yes); }

  template <class F>
  __device__ F load_acquire(F& flag) const {
    return shared<F>(flag).load(::cuda::memory_order_acquire);
  }
  template <class F>
  __device__ void store_release(F& flag, F value) const {
    shared<F>(flag).store(value, ::cuda::memory_order_release);
  }
  template <class F>
  __device__ F load_relaxed(F& flag) const {
    return shared<F>(flag).load(::cuda::memory_order_relaxed);
  }
  template <class F>
  __device__ void store_relaxed(F& flag, F value) const {
    shared<F>(flag).store(value, ::cuda::memory_order_relaxed);
  }
  template <class F>
  __device__ F exchange(F& flag, F value) const {
    return shared<F>(flag).exchange(value, ::cuda::memory_order_relaxed);
  }

  /// Stores `value` if `expected` is still there.
  template <class F>
  __device__ void replace(F& flag, F expected, F value) const {
    shared<F>(flag).compare_exchange_strong(expected, value, ::cuda::memory_order_relaxed);
  }

  /// Between two looks at a flag: nothing, since a sleep takes longer than a flag.
  __device__ void pause() const {}

  __device__ std::uint64_t nanoseconds() const {
    std::uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
  }

 private:
  template <class F>
  using shared = ::cuda::atomic_ref<F, ::cuda::thread_scope_system>;

  unsigned number_, blocks_;
  double* scratch_;
};

}  // namespace rondo::inline v0::device
