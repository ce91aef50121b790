#pragma once

#include <rondo/cuda/block.hpp>
#include <rondo/cuda/board.hpp>
#include <rondo/cuda/context.cuh>
#include <rondo/cuda/launch.cuh>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cuda/atomic>
#include <vector>

/// Runs the ranks of a test on one GPU, as the blocks of one cooperative launch: all of them run at the same time, or
/// none does. Memory is managed, so that the test fills it and looks at it like its own.
namespace gpu {

using rondo::device::check;

/// The kernels of rank r are kernels[r * calls …]. Between two of them the blocks of a rank, and of no other, meet.
template <class Kernel>
__global__ void __launch_bounds__(rondo::device::max_threads<Kernel>, 1)
    enter_ranks(Kernel const* kernels, unsigned calls, unsigned blocks, unsigned* meetings) {
#ifdef __CUDA_ARCH__
  extern __shared__ double scratch[];
  unsigned const rank = blockIdx.x / blocks;
  for (unsigned c = 0; c < calls; ++c) {
    rondo::device::context own(blockIdx.x % blocks, blocks, scratch);
    kernels[rank * calls + c](own);
    __syncthreads();
    if (threadIdx.x == 0) {
      ::cuda::atomic_ref<unsigned, ::cuda::thread_scope_device> meeting(meetings[rank]);
      meeting.fetch_add(1, ::cuda::memory_order_acq_rel);
      while (meeting.load(::cuda::memory_order_acquire) < (c + 1) * blocks) {}
    }
    __syncthreads();
  }
#endif
}

struct grid {
  unsigned blocks = 4, threads = 128;
};

/// `Ranks` ranks on the present device. All counters begin shortly before they wrap.
template <int Ranks>
class world {
 public:
  static constexpr int size = Ranks;
  static constexpr rondo::device::flag begin = 0xfffffff0;

  explicit world(grid g = {}, rondo::device::arena_shape shape = {}) : grid_(g), shape_(shape) {
    reports_ = static_cast<rondo::device::fault*>(allocate(Ranks * sizeof(rondo::device::fault)));
    std::fill_n(reports_, Ranks, rondo::device::fault{});
    for (int r = 0; r < Ranks; ++r) {
      arenas_[static_cast<std::size_t>(r)] = static_cast<std::byte*>(allocate(shape.bytes(Ranks)));
      start_at(arenas_[static_cast<std::size_t>(r)], begin);
    }
  }
  ~world() {
    for (void* const place : memory_) cudaFree(place);
  }
  world(world const&) = delete;
  world& operator=(world const&) = delete;

  /// Memory that host and device address, zeroed, until the world ends.
  void* allocate(std::size_t bytes) {
    void* place = nullptr;
    check(cudaMallocManaged(&place, bytes), "allocating managed memory");
    memory_.push_back(place);
    std::memset(place, 0, bytes);
    return place;
  }

  rondo::device::link<Ranks> link(int rank) {
    rondo::device::link<Ranks> all{
        .rank = rank, .arenas = {}, .shape = shape_, .report = reports_ + rank, .patience = patience};
    std::copy(arenas_.begin(), arenas_.end(), all.arenas);
    return all;
  }

  /// Runs programs[r], kernels one after the other, on rank r. Ranks meet nowhere but in kernels.
  template <class Kernel>
  void run(std::vector<std::vector<Kernel>> const& programs) {
    auto calls = static_cast<unsigned>(programs[0].size());
    auto* const kernels = static_cast<Kernel*>(allocate(Ranks * calls * sizeof(Kernel)));
    for (std::size_t r = 0; r < Ranks; ++r)
      for (std::size_t c = 0; c < calls; ++c)
        std::memcpy(static_cast<void*>(kernels + r * calls + c), &programs[r][c], sizeof(Kernel));
    auto* meetings = static_cast<unsigned*>(allocate(Ranks * sizeof(unsigned)));
    Kernel const* first = kernels;
    void* arguments[] = {&first, &calls, &grid_.blocks, &meetings};
    check(cudaLaunchCooperativeKernel(enter_ranks<Kernel>, Ranks * grid_.blocks, grid_.threads, arguments,
                                      rondo::device::scratch_count(grid_.threads) * sizeof(double), nullptr),
          "launching all ranks");
    check(cudaDeviceSynchronize(), "running all ranks");
  }

  rondo::device::fault& report(int rank) { return reports_[rank]; }
  std::uint64_t patience = 10'000'000'000;

 private:
  void start_at(std::byte* arena, rondo::device::flag number) {
    auto* const flags = reinterpret_cast<rondo::device::flag*>(arena);
    std::fill_n(flags, sizeof(rondo::device::board) / sizeof *flags, number);
    auto* const words = reinterpret_cast<std::uint64_t*>(arena + shape_.words_at());
    std::fill_n(words, (shape_.windows_at(Ranks) - shape_.words_at()) / sizeof *words, std::uint64_t{number} << 32);
  }

  grid grid_;
  rondo::device::arena_shape shape_;
  std::vector<void*> memory_;
  std::array<std::byte*, Ranks> arenas_{};
  rondo::device::fault* reports_;
};

}  // namespace gpu
