#pragma once

#include <rondo/adapters/nccl/device_memory.hpp>
#include <rondo/adapters/nccl/status.hpp>

#include <cstddef>
#include <cuda_runtime_api.h>
#include <string>

/// Included where CUDA is: lets all of the program's calls take memory of devices.
namespace rondo::inline v0::nccl {

inline void check_cuda(cudaError_t code, char const* call) {
  if (code != cudaSuccess)
    throw refusal(ncclUnhandledCudaError, std::string(call) + " failed: " + cudaGetErrorString(code));
}

/// A program with CUDA on a machine without a device: all is memory of the host, and no stream has anything to do.
inline bool no_device(cudaError_t code) noexcept {
  return code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver;
}

/// The device memory of the CUDA runtime.
inline constexpr device_memory cuda_memory{
    .holds =
        [](void const* address) {
          cudaPointerAttributes found{};
          if (cudaPointerGetAttributes(&found, address) == cudaSuccess)
            return found.type == cudaMemoryTypeDevice || found.type == cudaMemoryTypeManaged;
          (void)cudaGetLastError();  // an address that CUDA has never heard of is the host's
          return false;
        },
    .current =
        [] {
          int device = 0;
          if (auto const code = cudaGetDevice(&device); !no_device(code)) check_cuda(code, "cudaGetDevice");
          return device;
        },
    .allocate =
        [](std::size_t bytes) {
          void* address = nullptr;
          check_cuda(cudaMalloc(&address, bytes), "cudaMalloc");
          return address;
        },
    .free = [](void* address) { check_cuda(cudaFree(address), "cudaFree"); },
    .allocate_staging =
        [](std::size_t bytes) {
          void* address = nullptr;
          check_cuda(cudaMallocHost(&address, bytes), "cudaMallocHost");
          return address;
        },
    .free_staging = [](void* address) noexcept { (void)cudaFreeHost(address); },
    .copy =
        [](void* to, void const* from, std::size_t bytes, cudaStream_t stream) {
          check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
        },
    .wait =
        [](cudaStream_t stream) {
          auto const code = cudaStreamSynchronize(stream);
          if (!no_device(code)) check_cuda(code, "cudaStreamSynchronize");
        },
};

inline bool const cuda_memory_is_used = (devices = &cuda_memory, true);

}  // namespace rondo::inline v0::nccl
