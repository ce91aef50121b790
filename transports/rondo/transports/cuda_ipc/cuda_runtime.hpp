#pragma once

#include <rondo/detail/file_descriptor.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/transports/cuda_ipc/runtime.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <random>
#include <string>
#include <unistd.h>

namespace rondo::inline v0 {

/// The runtime of CUDA, from version 12.5 on. Calls of the driver are found at run time, so that a program links cudart
/// alone. Models device_runtime.
class cuda_runtime {
 public:
  using stream = cudaStream_t;

  std::string process() const { return detail::text_of({process_token, "-", ::getpid()}); }

  int current() const {
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    return device;
  }
  device_uuid uuid(int device) const {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    device_uuid name;
    static_assert(sizeof properties.uuid == sizeof name);
    std::memcpy(name.data(), &properties.uuid, sizeof name);
    return name;
  }
  int find(device_uuid const& name) const {
    int count = 0;
    check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    for (int device = 0; device < count; ++device)
      if (uuid(device) == name) return device;
    return -1;
  }

  bool reaches(int device, int peer) const {
    int can = 0;
    check(cudaDeviceCanAccessPeer(&can, device, peer), "cudaDeviceCanAccessPeer");
    return can != 0;
  }
  void enable(int device, int peer) const {
    on const here(device);
    auto const code = cudaDeviceEnablePeerAccess(peer, 0);
    if (code == cudaErrorPeerAccessAlreadyEnabled)
      (void)cudaGetLastError();
    else
      check(code, "cudaDeviceEnablePeerAccess");
  }

  bool on_device(std::byte const* p) const {
    cudaPointerAttributes found{};
    if (cudaPointerGetAttributes(&found, p) == cudaSuccess) return found.type == cudaMemoryTypeDevice;
    (void)cudaGetLastError();  // an address that CUDA has never heard of is the host's
    return false;
  }

  std::byte* allocate(int device, std::size_t bytes) const {
    on const here(device);
    void* p = nullptr;
    check(cudaMalloc(&p, bytes), "cudaMalloc");
    return static_cast<std::byte*>(p);
  }
  void deallocate(int, std::byte* p) const noexcept { (void)cudaFree(p); }

  device_allocation allocation_of(std::byte const* p) const {
    auto const ask = driver<decltype(cuPointerGetAttribute)>("cuPointerGetAttribute");
    auto const address = reinterpret_cast<CUdeviceptr>(p);
    CUdeviceptr base = 0;
    device_allocation found{};
    static_assert(sizeof found.id == sizeof(unsigned long long));
    check(ask(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address), "cuPointerGetAttribute");
    check(ask(&found.bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address), "cuPointerGetAttribute");
    check(ask(&found.id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address), "cuPointerGetAttribute");
    found.base = reinterpret_cast<std::byte*>(base);
    return found;
  }

  device_handle export_handle(std::byte* base) const {
    cudaIpcMemHandle_t handle;
    check(cudaIpcGetMemHandle(&handle, base), "cudaIpcGetMemHandle");
    device_handle bytes;
    static_assert(sizeof handle == sizeof bytes);
    std::memcpy(bytes.data(), &handle, sizeof handle);
    return bytes;
  }
  std::byte* open_handle(int device, device_handle const& bytes) const {
    on const here(device);
    cudaIpcMemHandle_t handle;
    std::memcpy(&handle, bytes.data(), sizeof handle);
    void* p = nullptr;
    check(cudaIpcOpenMemHandle(&p, handle, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle");
    return static_cast<std::byte*>(p);
  }
  void close_handle(int device, std::byte* p) const noexcept {
    on const here(device);
    (void)cudaIpcCloseMemHandle(p);
  }

  bool has_files(int device) const {
    int manages = 0, exports = 0;
    auto const ask = driver<decltype(cuDeviceGetAttribute)>("cuDeviceGetAttribute");
    check(ask(&manages, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device), "cuDeviceGetAttribute");
    check(ask(&exports, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device),
          "cuDeviceGetAttribute");
    return manages != 0 && exports != 0;
  }
  device_file allocate_file(int device, std::size_t bytes) const {
    on const here(device);
    CUmemAllocationProp wanted{};
    wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    wanted.location = place_of(device);
    wanted.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    std::size_t grain = 0;
    check(driver<decltype(cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity")(
              &grain, &wanted, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
          "cuMemGetAllocationGranularity");
    std::size_t const size = (bytes + grain - 1) / grain * grain;
    physical memory;
    check(driver<decltype(cuMemCreate)>("cuMemCreate")(&memory.handle, size, &wanted, 0), "cuMemCreate");
    int file = -1;
    check(driver<decltype(cuMemExportToShareableHandle)>("cuMemExportToShareableHandle")(
              &file, memory.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          "cuMemExportToShareableHandle");
    detail::file_descriptor owned(file);
    return {map(device, memory, size), size, std::move(owned)};
  }
  std::byte* map_file(int device, int file, std::size_t bytes) const {
    on const here(device);
    physical memory;
    check(driver<decltype(cuMemImportFromShareableHandle)>("cuMemImportFromShareableHandle")(
              &memory.handle, reinterpret_cast<void*>(static_cast<std::intptr_t>(file)),
              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
          "cuMemImportFromShareableHandle");
    return map(device, memory, bytes);
  }
  void unmap(std::byte* p, std::size_t bytes) const noexcept {
    auto const address = reinterpret_cast<CUdeviceptr>(p);
    if (auto* const end = find_driver<decltype(cuMemUnmap)>("cuMemUnmap")) (void)end(address, bytes);
    if (auto* const end = find_driver<decltype(cuMemAddressFree)>("cuMemAddressFree")) (void)end(address, bytes);
  }

  std::byte* allocate_pinned(std::size_t bytes) const {
    void* p = nullptr;
    check(cudaMallocHost(&p, bytes), "cudaMallocHost");
    return static_cast<std::byte*>(p);
  }
  void free_pinned(std::byte* p) const noexcept { (void)cudaFreeHost(p); }

  void copy(std::byte* to, std::byte const* from, std::size_t bytes, stream s) const {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, s), "cudaMemcpyAsync");
  }
  void zero(std::byte* p, std::size_t bytes, stream s) const {
    check(cudaMemsetAsync(p, 0, bytes, s), "cudaMemsetAsync");
  }
  void wait(stream s) const { check(cudaStreamSynchronize(s), "cudaStreamSynchronize"); }

 private:
  /// A forked child has its parent's token, but another number.
  static std::string make_token() {
    std::random_device device;
    return detail::text_of({device(), "-", device(), "-", device(), "-", device()});
  }
  inline static std::string const process_token = make_token();

  /// Makes a device the current one of this thread for a while.
  class on {
   public:
    explicit on(int device) noexcept {
      if (cudaGetDevice(&before_) == cudaSuccess && before_ != device) (void)cudaSetDevice(device);
    }
    on(on const&) = delete;
    on& operator=(on const&) = delete;
    ~on() { (void)cudaSetDevice(before_); }

   private:
    int before_ = 0;
  };

  /// Memory that lasts as long as it is mapped anywhere, or this holds it.
  struct physical {
    CUmemGenericAllocationHandle handle = 0;

    physical() = default;
    physical(physical const&) = delete;
    physical& operator=(physical const&) = delete;
    ~physical() {
      auto* const release = handle ? find_driver<decltype(cuMemRelease)>("cuMemRelease") : nullptr;
      if (release) (void)release(handle);
    }
  };

  static CUmemLocation place_of(int device) noexcept {
    CUmemLocation place{};
    place.type = CU_MEM_LOCATION_TYPE_DEVICE;
    place.id = device;
    return place;
  }

  std::byte* map(int device, physical const& memory, std::size_t bytes) const {
    CUdeviceptr address = 0;
    check(driver<decltype(cuMemAddressReserve)>("cuMemAddressReserve")(&address, bytes, 0, 0, 0),
          "cuMemAddressReserve");
    auto* const p = reinterpret_cast<std::byte*>(address);
    try {
      check(driver<decltype(cuMemMap)>("cuMemMap")(address, bytes, 0, memory.handle, 0), "cuMemMap");
      CUmemAccessDesc access{};
      access.location = place_of(device);
      access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
      check(driver<decltype(cuMemSetAccess)>("cuMemSetAccess")(address, bytes, &access, 1), "cuMemSetAccess");
    } catch (device_error const&) {
      unmap(p, bytes);
      throw;
    }
    return p;
  }

  template <class F>
  static F* find_driver(char const* name) noexcept {
    void* found = nullptr;
    constexpr unsigned version = 12000;
    cudaDriverEntryPointQueryResult answer{};
    if (cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &answer) == cudaSuccess)
      return reinterpret_cast<F*>(found);
    (void)cudaGetLastError();
    return nullptr;
  }
  template <class F>
  static F* driver(char const* name) {
    if (auto* const found = find_driver<F>(name)) return found;
    throw device_error(detail::text_of({"this driver has no ", name, ": install one for CUDA 12 or later"}));
  }

  static void check(cudaError_t code, char const* call) {
    if (code == cudaSuccess) return;
    (void)cudaGetLastError();  // it is told here, and not again by the next call
    throw device_error(detail::text_of({call, " failed: ", cudaGetErrorString(code)}));
  }
  static void check(CUresult code, char const* call) {
    if (code != CUDA_SUCCESS)
      throw device_error(detail::text_of({call, " failed with CUDA's error ", static_cast<int>(code)}));
  }
};

static_assert(device_runtime<cuda_runtime>);

}  // namespace rondo::inline v0
