#pragma once

#include "gpu_world.cuh"

/// Where the tests of kernels run: here, on a GPU; in tests/cuda_host, as threads of the processor.
namespace kernel_cases {

/// With windows so small that a test passes through several.
template <int Ranks>
struct world : gpu::world<Ranks> {
  world()
      : gpu::world<Ranks>({.blocks = 2, .threads = 64},
                          {.words = 24, .window_bytes = 6144, .tile_packs = 64, .slots = 2, .blocks = 8}) {}
};

}  // namespace kernel_cases
