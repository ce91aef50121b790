// What kernels cost on one GPU whose blocks are several ranks: barriers, small all-reduces, and a training step in one
// launch against one in several. Nothing here passes through a link: these are the costs of launches, flags and memory.
#include <rondo/cuda/block.hpp>
#include <rondo/cuda/fused/sync_and_step.hpp>
#include <rondo/cuda/low_latency.hpp>
#include <rondo/cuda/one_shot.hpp>
#include <rondo/cuda/reduce_scatter.hpp>
#include <rondo/cuda/two_shot.hpp>
#include <rondo/fused/adamw.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <gpu_world.cuh>
#include <vector>

namespace {

using namespace rondo;
using device::check;

struct memory {
  ~memory() {
    for (void* const place : all) cudaFree(place);
  }
  template <class T>
  T* of(std::size_t count) {
    void* place = nullptr;
    check(cudaMalloc(&place, count * sizeof(T)), "allocating device memory");
    check(cudaMemset(place, 0, count * sizeof(T)), "clearing device memory");
    all.push_back(place);
    return static_cast<T*>(place);
  }
  std::vector<void*> all;
};

/// Ranks on one device, whose memory is the device's.
template <int N>
struct ranks_on_device {
  explicit ranks_on_device(device::arena_shape s) : shape(s) {
    for (auto& arena : arenas) arena = device_memory.of<std::byte>(shape.bytes(N));
    check(cudaMallocManaged(&reports, N * sizeof(device::fault)), "allocating reports");
    std::fill_n(reports, N, device::fault{});
  }
  ~ranks_on_device() { cudaFree(reports); }

  device::link<N> link(int rank) {
    device::link<N> all{
        .rank = rank, .arenas = {}, .shape = shape, .report = reports + rank, .patience = 10'000'000'000};
    std::copy_n(arenas, N, all.arenas);
    return all;
  }

  /// Seconds of one launch in which every rank runs make(rank) `calls` times.
  template <class Make>
  double seconds(unsigned calls, unsigned blocks, unsigned threads, Make const& make) {
    using kernel = decltype(make(0));
    std::vector<kernel> all;
    for (int r = 0; r < N; ++r)
      for (unsigned c = 0; c < calls; ++c) all.push_back(make(r));
    auto* const kernels = device_memory.of<kernel>(all.size() + 1);
    auto* meetings = device_memory.of<unsigned>(N);
    check(cudaMemcpy(kernels, all.data(), all.size() * sizeof(kernel), cudaMemcpyHostToDevice), "copying kernels");
    kernel const* first = kernels;
    void* arguments[] = {&first, &calls, &blocks, &meetings};
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin), "creating an event");
    check(cudaEventCreate(&end), "creating an event");
    check(cudaEventRecord(begin), "recording an event");
    check(cudaLaunchCooperativeKernel(gpu::enter_ranks<kernel>, N * blocks, threads, arguments,
                                      device::scratch_count(threads) * sizeof(double), nullptr),
          "launching all ranks");
    check(cudaEventRecord(end), "recording an event");
    check(cudaDeviceSynchronize(), "running all ranks");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "reading a clock");
    cudaEventDestroy(begin), cudaEventDestroy(end);
    for (int r = 0; r < N; ++r)
      if (reports[r].raised != device::fault::none) {
        std::fprintf(stderr, "rank %d waited in vain for rank %d\n", r, reports[r].peer);
        std::exit(1);
      }
    return milliseconds / 1e3;
  }

  /// Median microseconds of a call: what many calls in a launch take beyond none.
  template <class Make>
  double microseconds(unsigned calls, unsigned blocks, unsigned threads, Make const& make) {
    std::vector<double> times;
    for (int i = 0; i < 7; ++i)
      times.push_back((seconds(calls, blocks, threads, make) - seconds(0, blocks, threads, make)) / calls * 1e6);
    std::nth_element(times.begin(), times.begin() + 3, times.end());
    return times[3];
  }

  memory device_memory;
  device::arena_shape shape;
  std::byte* arenas[N];
  device::fault* reports;
};

template <int N>
struct barriers {
  device::link<N> ranks;
  int times;
  template <class Context>
  RONDO_HD void operator()(Context& context) const {
    device::session<Context, N> s(context, ranks);
    for (int i = 0; i < times; ++i)
      if (!s.barrier()) return;
    s.close();
  }
};

template <int N>
void small_calls(unsigned blocks, unsigned threads) {
  ranks_on_device<N> all({});
  double const one = all.microseconds(1, blocks, threads, [&](int r) { return barriers<N>{all.link(r), 1000}; }) / 1000;
  std::printf("%d ranks, %u blocks of %u threads each: a barrier takes %.2f us\n", N, blocks, threads, one);
  std::printf("%12s %12s %12s %12s   us per call, bfloat16, sum\n", "bytes", "low_latency", "one_shot", "two_shot");
  for (std::size_t bytes = 1024; bytes <= std::size_t{16} << 20; bytes *= 4) {
    std::size_t const count = bytes / 2;
    std::vector<bfloat16*> data;
    memory buffers;
    for (int r = 0; r < N; ++r) data.push_back(buffers.of<bfloat16>(count));
    auto const time = [&](auto kernel) {
      return all.microseconds(bytes > 1 << 20 ? 10 : 100, blocks, threads, [&, kernel](int r) mutable {
        kernel.ranks = all.link(r);
        kernel.in = kernel.out = data[static_cast<std::size_t>(r)];
        kernel.count = count;
        return kernel;
      });
    };
    std::printf("%12zu ", bytes);
    bytes <= 65536 ? std::printf("%12.2f ", time(device::low_latency<N, bfloat16>{})) : std::printf("%12s ", "");
    std::printf("%12.2f %12.2f\n", time(device::one_shot<N, bfloat16>{}), time(device::two_shot<N, bfloat16>{}));
  }
}

// The same step in several launches, as trainers write it: each of these passes over memory once.
__global__ void square(float const* x, std::size_t count, double* total) {
  double sum = 0;
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += gridDim.x * std::size_t{blockDim.x})
    sum += static_cast<double>(x[i]) * x[i];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
  if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
}

__global__ void step(adamw::update update, float const* gradient, double const* squares, float* master, float* mean,
                     float* variance, bfloat16* weight, std::size_t count) {
  float const factor = clip_factor(*squares, 1.0);
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += gridDim.x * std::size_t{blockDim.x}) {
    update(gradient[i] * factor, master[i], mean[i], variance[i]);
    weight[i] = bfloat16(master[i]);
  }
}

double bandwidth() {  // bytes a second
  int kilohertz = 0, bits = 0;
  check(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrMemoryClockRate, 0), "asking for the clock of the memory");
  check(cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, 0), "asking for the width of the memory");
  return 2.0 * kilohertz * 1e3 * bits / 8;
}

template <class F>
double median_milliseconds(F const& work) {
  std::vector<double> times;
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "creating an event");
  check(cudaEventCreate(&end), "creating an event");
  for (int i = 0; i < 9; ++i) {
    check(cudaEventRecord(begin), "recording an event");
    work();
    check(cudaEventRecord(end), "recording an event");
    check(cudaDeviceSynchronize(), "waiting");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "reading a clock");
    times.push_back(milliseconds);
  }
  cudaEventDestroy(begin), cudaEventDestroy(end);
  std::nth_element(times.begin(), times.begin() + 4, times.end());
  return times[4];
}

template <int N>
void training_step(unsigned blocks, unsigned threads) {
  constexpr std::size_t count = 25'000'000;
  ranks_on_device<N> all({.window_bytes = std::size_t{32} << 20});
  memory m;
  std::vector<bfloat16*> gradients, weights;
  auto* const settings = m.of<device::step_settings<adamw>>(1);
  device::step_settings<adamw> const wanted{.rule = {}, .max_norm = 1.0, .scale = 1.0F};
  check(cudaMemcpy(settings, &wanted, sizeof wanted, cudaMemcpyHostToDevice), "copying settings");
  for (int r = 0; r < N; ++r) gradients.push_back(m.of<bfloat16>(count)), weights.push_back(m.of<bfloat16>(count));
  std::vector<device::sync_and_step<N, bfloat16, bfloat16, adamw>> steps;
  for (int r = 0; r < N; ++r) {
    std::size_t const own = shard_of(count, r, N).count;
    steps.push_back({.ranks = all.link(r),
                     .gradients = {},
                     .weights = {},
                     .count = count,
                     .reduced = m.of<float>(own),
                     .master = m.of<float>(own),
                     .moments = m.of<float>(2 * own),
                     .settings = settings,
                     .outcome = m.of<device::step_outcome>(1)});
    std::copy(gradients.begin(), gradients.end(), steps.back().gradients);
    std::copy(weights.begin(), weights.end(), steps.back().weights);
  }
  auto const fused = [&](int r) { return steps[static_cast<std::size_t>(r)]; };
  double const together = all.microseconds(1, blocks, threads, fused) / 1e3;

  // All-reduce into fp32, norm, and AdamW on everything, for each rank; the ranks share the GPU.
  auto* const reduced = m.of<float>(count);
  auto* const master = m.of<float>(count);
  auto* const moments = m.of<float>(2 * count);
  auto* const total = m.of<double>(1);
  std::vector<float*> sums;
  for (int r = 0; r < N; ++r) sums.push_back(m.of<float>(count));
  using reduction = device::two_shot<N, bfloat16, avg_op, device::keep, float>;
  double const reducing = all.microseconds(1, blocks, threads, [&](int r) {
    return reduction{all.link(r), gradients[static_cast<std::size_t>(r)], sums[static_cast<std::size_t>(r)], count};
  }) / 1e3;
  double const stepping = median_milliseconds([&] {
    for (int r = 0; r < N; ++r) {
      check(cudaMemsetAsync(total, 0, sizeof *total), "clearing a number");
      square<<<1024, 256>>>(reduced, count, total);
      step<<<1024, 256>>>(adamw{}.at(1), reduced, total, master, moments, moments + count,
                          weights[static_cast<std::size_t>(r)], count);
    }
  });
  double const bytes = (4.0 * N + 32) * count;  // gradients and weights of all ranks, reduced twice, state in and out
  double const limit = bytes / bandwidth() * 1e3;
  std::printf("%d ranks, %zu parameters, bfloat16 gradients and weights, clipping, AdamW in fp32:\n", N, count);
  std::printf("  sync_and_step %.3f ms, limit of the memory %.3f ms (%.0f %%)\n", together, limit,
              100 * limit / together);
  std::printf("  all_reduce %.3f ms + norm and step on every rank %.3f ms = %.3f ms: %.2f times as long\n", reducing,
              stepping, reducing + stepping, (reducing + stepping) / together);
}

}  // namespace

int main() {
  cudaDeviceProp card;
  check(cudaGetDeviceProperties(&card, 0), "asking for the card");
  std::printf("%s, %d multiprocessors, %.0f GB/s by its clock; all ranks on this one GPU\n\n", card.name,
              card.multiProcessorCount, bandwidth() / 1e9);
  auto const processors = static_cast<unsigned>(card.multiProcessorCount);
  small_calls<2>(std::min(16U, processors / 2), 512);
  small_calls<4>(std::min(16U, processors / 4), 512);
  small_calls<8>(std::min(16U, processors / 8), 512);
  std::printf("\n");
  training_step<2>(std::min(32U, processors / 2), 512);
  training_step<8>(std::min(16U, processors / 8), 512);
}
