#pragma once

#include <rondo/cuda/block.hpp>
#include <rondo/cuda/context.cuh>
#include <rondo/error.hpp>

#include <cstddef>
#include <cuda_runtime.h>
#include <string>

namespace rondo::inline v0::device {

/// Most threads of a block of a kernel. Each then has 128 registers; a kernel that needs more says how many threads it
/// can have at most.
template <class Kernel>
inline constexpr unsigned max_threads = 512;
template <class Kernel>
  requires requires { Kernel::max_threads; }
inline constexpr unsigned max_threads<Kernel> = Kernel::max_threads;

namespace detail {

/// The one entry of all kernels. Their text has no place of its own on the host.
template <class Kernel>
__global__ void __launch_bounds__(max_threads<Kernel>, 1) enter(const __grid_constant__ Kernel kernel) {
#ifdef __CUDA_ARCH__
  extern __shared__ double scratch[];
  context own(blockIdx.x, gridDim.x, scratch);
  kernel(own);
#endif
}

}  // namespace detail

/// Throws what CUDA says, as one sentence about `doing`.
inline void check(cudaError_t status, char const* doing) {
  if (status != cudaSuccess) throw error(std::string(doing) + ": " + cudaGetErrorString(status));
}

/// Most blocks of `threads` threads of this kernel that the present device runs at the same time.
template <class Kernel>
unsigned most_blocks(unsigned threads) {
  int device = 0, processors = 0, each = 0;
  check(cudaGetDevice(&device), "asking for the device");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "asking for the device's size");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, detail::enter<Kernel>, static_cast<int>(threads),
                                                      scratch_count(threads) * sizeof(double)),
        "asking how many blocks of a kernel run at once");
  return static_cast<unsigned>(processors * each);
}

/// Launches a kernel on `stream`, as a cooperative one: blocks wait for those of peers, so if not all of them can run
/// at the same time, the launch fails instead of hanging. Returns at once. May be captured into a graph.
///
/// All ranks launch the same kernels with the same `blocks` and `threads`, those of one rank one after the other.
template <class Kernel>
void launch(Kernel const& kernel, unsigned blocks, unsigned threads, cudaStream_t stream) {
  if (threads == 0 || threads > max_threads<Kernel> || blocks == 0 || blocks > kernel.ranks.shape.blocks)
    throw invalid_argument("a kernel runs in 1 to " + std::to_string(kernel.ranks.shape.blocks) + " blocks of 1 to " +
                           std::to_string(max_threads<Kernel>) +
                           " threads: ask for fewer, or for an arena of a larger shape");
  if constexpr (requires { kernel.fits(); })
    if (!kernel.fits()) throw invalid_argument("a row has to fit a window: ask for an arena with larger windows");
  cudaLaunchAttribute together{};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t how{};
  how.gridDim = blocks;
  how.blockDim = threads;
  how.dynamicSmemBytes = scratch_count(threads) * sizeof(double);
  how.stream = stream;
  how.attrs = &together;
  how.numAttrs = 1;
  check(cudaLaunchKernelEx(&how, detail::enter<Kernel>, kernel), "launching a kernel of rondo");
}

}  // namespace rondo::inline v0::device
