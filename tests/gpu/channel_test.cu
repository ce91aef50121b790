#include <rondo/cuda/arena.cuh>
#include <rondo/cuda/channel.cuh>
#include <rondo/cuda/low_latency.hpp>
#include <rondo/cuda/one_shot.hpp>
#include <rondo/cuda/two_shot.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

// The host side: two ranks on one device, each with a stream of its own. A driver that does not run two cooperative
// launches at the same time, though there is room for both, lets each of them end after two seconds with a report.
namespace {

using namespace rondo;
using device::check;

constexpr int n = 2;
constexpr unsigned blocks = 4, threads = 256;

class device_channel : public testing::Test {
 protected:
  device_channel() {
    std::array<std::byte*, n> arenas{};
    for (int r = 0; r < n; ++r) {
      arenas_.push_back(std::make_unique<device::arena>(n));
      arenas[static_cast<std::size_t>(r)] = arenas_.back()->data();
      check(cudaStreamCreateWithFlags(&streams_[r], cudaStreamNonBlocking), "creating a stream");
      check(cudaMallocManaged(&data_[r], count * sizeof(float)), "allocating managed memory");
    }
    for (int r = 0; r < n; ++r)
      channels_.push_back(
          std::make_unique<device::channel<n>>(r, arenas_[0]->shape(), arenas, std::chrono::seconds(2)));
  }
  ~device_channel() override {
    cudaDeviceSynchronize();
    for (int r = 0; r < n; ++r) cudaStreamDestroy(streams_[r]), cudaFree(data_[r]);
  }

  void fill(float value) {
    check(cudaDeviceSynchronize(), "waiting");
    for (int r = 0; r < n; ++r) std::fill_n(data_[r], count, value + static_cast<float>(r));
  }
  void expect(float value) {
    check(cudaDeviceSynchronize(), "waiting");
    for (int r = 0; r < n; ++r) {
      channels_[static_cast<std::size_t>(r)]->check();
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(data_[r][i], value) << "rank " << r << " element " << i;
    }
  }
  template <template <int, class, class, class, class, class> class Kernel>
  void all_reduce(int rank, cudaStream_t stream) {
    auto& channel = *channels_[static_cast<std::size_t>(rank)];
    Kernel<n, float, sum_op, device::keep, float, float> const kernel{channel.ranks(), data_[rank], data_[rank], count};
    channel.launch(kernel, blocks, threads, stream);
  }

  static constexpr std::size_t count = 5000;
  std::vector<std::unique_ptr<device::arena>> arenas_;
  std::vector<std::unique_ptr<device::channel<n>>> channels_;
  cudaStream_t streams_[n];
  float* data_[n];
};

TEST_F(device_channel, all_reduces_on_streams_of_two_ranks) {
  fill(1);
  for (int r = 0; r < n; ++r) all_reduce<device::one_shot>(r, streams_[r]);
  expect(3);
  for (int r = 0; r < n; ++r) all_reduce<device::two_shot>(r, streams_[r]);
  expect(6);
  for (int r = 0; r < n; ++r) all_reduce<device::low_latency>(r, streams_[r]);
  expect(12);
}

TEST_F(device_channel, keeps_the_order_of_launches_from_several_streams) {
  cudaStream_t other;
  check(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "creating a stream");
  fill(1);
  for (int i = 0; i < 5; ++i)
    for (int r = 0; r < n; ++r) all_reduce<device::one_shot>(r, r == 0 && i % 2 == 1 ? other : streams_[r]);
  expect(3 * 16);
  check(cudaStreamDestroy(other), "destroying a stream");
}

TEST_F(device_channel, kernels_are_captured_once_and_replayed) {
  fill(0);
  cudaGraphExec_t replay[n];
  for (int r = 0; r < n; ++r) {
    cudaGraph_t graph;
    check(cudaStreamBeginCapture(streams_[r], cudaStreamCaptureModeThreadLocal), "beginning a capture");
    all_reduce<device::two_shot>(r, streams_[r]);
    all_reduce<device::one_shot>(r, streams_[r]);
    check(cudaStreamEndCapture(streams_[r], &graph), "ending a capture");
    check(cudaGraphInstantiate(&replay[r], graph, 0), "instantiating a graph");
    check(cudaGraphDestroy(graph), "destroying a graph");
  }
  for (int i = 0; i < 20; ++i) {
    fill(static_cast<float>(i));
    for (int r = 0; r < n; ++r) check(cudaGraphLaunch(replay[r], streams_[r]), "launching a graph");
    expect(2 * (2 * static_cast<float>(i) + 1));
  }
  for (int r = 0; r < n; ++r) check(cudaGraphExecDestroy(replay[r]), "destroying a graph");
}

TEST_F(device_channel, a_rank_that_does_not_come_is_named) {
  fill(1);
  all_reduce<device::one_shot>(1, streams_[1]);
  check(cudaDeviceSynchronize(), "waiting");
  try {
    channels_[1]->check();
    FAIL() << "nothing was reported";
  } catch (deadline_exceeded const& e) { EXPECT_EQ(e.rank(), 0); }
}

TEST_F(device_channel, refuses_a_launch_that_the_arena_has_no_room_for) {
  auto& channel = *channels_[0];
  device::one_shot<n, float> const kernel{channel.ranks(), data_[0], data_[0], count};
  EXPECT_THROW(channel.launch(kernel, 1000, threads, streams_[0]), invalid_argument);
  EXPECT_THROW(channel.launch(kernel, blocks, 4096, streams_[0]), invalid_argument);
  EXPECT_THROW(device::arena(n, {.slots = 3}), invalid_argument);
}

}  // namespace
