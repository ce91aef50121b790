#pragma once

#include "host_world.hpp"

/// Where the tests of kernels run: here, as threads of the processor; in tests/gpu, on a GPU.
namespace kernel_cases {

template <int Ranks>
using world = cuda_host::world<Ranks>;

}  // namespace kernel_cases
