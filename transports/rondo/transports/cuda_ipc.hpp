#pragma once

#include <rondo/pollable.hpp>
#include <rondo/transports/cuda_ipc/basic_cuda_ipc.hpp>
#include <rondo/transports/cuda_ipc/cuda_runtime.hpp>

namespace rondo::inline v0 {

/// Byte streams between the GPUs of one host, and memory for kernels; see basic_cuda_ipc.
using cuda_ipc = basic_cuda_ipc<cuda_runtime>;

static_assert(pollable<cuda_ipc>);

}  // namespace rondo::inline v0
