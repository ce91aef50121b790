#include "cases.hpp"
#include "host_world.hpp"
#include <rondo/cuda/low_latency.hpp>
#include <rondo/cuda/one_shot.hpp>
#include <rondo/cuda/two_shot.hpp>
#include <rondo/schedule/ring.hpp>

#include <atomic>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace rondo;
using namespace kernel_cases;
using cuda_host::context;
using cuda_host::launch;
using cuda_host::world;

// Kernels of all kinds, with other grids, one after the other: each must leave the arena as the next one expects it.
// The longer ones pass through two windows.
TEST(device_protocol, kernels_of_all_kinds_and_grids_may_follow_each_other) {
  constexpr int n = 3;
  constexpr std::size_t count = 900;
  world<n> ranks({.blocks = 3, .threads = 2, .haste = 80});
  std::vector<std::vector<launch>> programs(n);
  std::vector<std::vector<buffer<std::uint32_t>>> outs;
  std::vector<std::uint32_t> totals;
  for (unsigned c = 0; c < 40; ++c) {
    outs.emplace_back();
    totals.push_back(0);
    std::size_t const size = c % 5 == 0 ? 1 : count;
    for (int r = 0; r < n; ++r) {
      buffer<std::uint32_t> const in(ranks, size), out(ranks, size);
      std::uint32_t const value = 1000u * c + static_cast<unsigned>(r);
      std::fill_n(in.data(), size, value);
      std::fill_n(out.data(), size, value);
      totals.back() += value;
      outs.back().push_back(out);
      auto& program = programs[static_cast<std::size_t>(r)];
      auto const add = [&](auto kernel) { program.push_back({[kernel](context& own) { kernel(own); }, 1 + c % 3}); };
      auto const link = ranks.link(r);
      if (c % 4 == 0) add(device::one_shot<n, std::uint32_t>{link, in.data(), out.data(), size});
      if (c % 4 == 1) add(device::low_latency<n, std::uint32_t>{link, in.data(), out.data(), size});
      if (c % 4 == 2) add(device::two_shot<n, std::uint32_t>{link, in.data(), out.data(), size});
      if (c % 4 == 3) add(device::scheduled<n, ring::all_reduce, std::uint32_t>{link, {n}, out.data(), size});
    }
  }
  ranks.run_mixed(programs);
  for (std::size_t c = 0; c < outs.size(); ++c)
    for (auto const& out : outs[c])
      for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], totals[c]) << "call " << c << " element " << i;
}

// Numbers of windows wrap, and words of long ago must not look as if they had come.
TEST(device_protocol, words_that_were_not_used_for_half_the_range_are_renewed) {
  constexpr int n = 2;
  world<n> ranks({.blocks = 2, .threads = 2});
  std::vector<std::vector<launch>> programs(n);
  std::vector<buffer<float>> outs;
  constexpr std::size_t many = 20;
  for (int r = 0; r < n; ++r) {
    auto const link = ranks.link(r);
    auto& program = programs[static_cast<std::size_t>(r)];
    auto const call = [&](std::size_t count, float value) {
      buffer<float> const in(ranks, count), out(ranks, count);
      std::fill_n(in.data(), count, value);
      device::low_latency<n, float> const kernel{link, in.data(), out.data(), count};
      program.push_back({[kernel](context& own) { kernel(own); }});
      outs.push_back(out);
    };
    // What many calls do to the counters, without the calls.
    auto const skip_to = [&](device::flag number) {
      program.push_back({[link, number](context& own) {
        if (own.block() == 0 && own.thread() == 0)
          std::fill_n(link.board(link.rank).windows, device::max_blocks, number);
      }});
    };
    call(many, 1.0F);
    call(many, 2.0F);
    for (device::flag part = 0; part < 4; ++part) {
      skip_to((part << 30) - 2);
      call(1, 3.0F);
      call(1, 4.0F);
    }
    skip_to(world<n>::begin - 2);
    call(many, 5.0F + static_cast<float>(r));
    call(many, 7.0F + static_cast<float>(r));
  }
  ranks.run_mixed(programs);
  for (std::size_t c = 0; c < outs.size() / 2; ++c) {
    float const expected[] = {2, 4, 6, 8, 6, 8, 6, 8, 6, 8, 11, 15};
    for (std::size_t r = 0; r < n; ++r)
      for (std::size_t i = 0; i < outs[c].size(); ++i)
        ASSERT_EQ(outs[r * outs.size() / 2 + c][i], expected[c]) << "call " << c << " rank " << r;
  }
}

// A rank that does not come is named, and the kernels of the others end.
TEST(device_protocol, a_wait_ends_with_a_report) {
  constexpr std::size_t count = 40;
  auto const alone = [&](auto make) {
    world<3> ranks({.blocks = 2, .threads = 2});
    ranks.patience = 30'000'000;
    buffer<float> const in(ranks, count * 3), out(ranks, count * 3);
    std::vector<std::vector<launch>> programs(3);
    for (int r : {0, 1}) {
      auto const kernel = make(ranks.link(r), in.data() + static_cast<std::size_t>(r) * count,
                               out.data() + static_cast<std::size_t>(r) * count);
      programs[static_cast<std::size_t>(r)].push_back({[kernel](context& own) { kernel(own); }});
    }
    ranks.run_mixed(programs);
    for (int r : {0, 1}) {
      auto const& report = ranks.report(r);
      EXPECT_EQ(report.raised, fault::waited_too_long);
      EXPECT_EQ(report.rank, r);
      EXPECT_NE(report.wanted, report.seen);
    }
    return ranks.report(1).peer;
  };
  using link = device::link<3>;
  EXPECT_EQ(alone([](link l, float* in, float* out) { return device::one_shot<3, float>{l, in, out, count}; }), 2);
  EXPECT_EQ(alone([](link l, float* in, float* out) { return device::two_shot<3, float>{l, in, out, count}; }), 2);
  EXPECT_EQ(alone([](link l, float* in, float* out) { return device::low_latency<3, float>{l, in, out, count}; }), 2);
  alone([](link l, float* in, float* out) { return device::ring<3, float>{l, in, out, count}; });
}

// The host ends what waits.
TEST(device_protocol, a_kernel_that_is_told_to_stop_ends) {
  world<2> ranks({.blocks = 1, .threads = 2});
  ranks.patience = 5'000'000'000;
  buffer<float> const data(ranks, 8);
  std::vector<std::vector<launch>> programs(2);
  device::one_shot<2, float> const kernel{ranks.link(0), data.data(), data.data(), 8};
  programs[0].push_back({[kernel](context& own) { kernel(own); }});
  std::thread host([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic_ref<device::flag>(ranks.report(0).raised).store(fault::told_to_stop);
  });
  ranks.run_mixed(programs);
  host.join();
  EXPECT_EQ(ranks.report(0).peer, nobody);
}

TEST(device_protocol, an_arena_that_kernels_find_no_room_in_is_refused) {
  EXPECT_NO_THROW(device::arena_shape{}.check(16));
  EXPECT_THROW(device::arena_shape{}.check(17), invalid_argument);
  EXPECT_THROW(device::arena_shape{.slots = 3}.check(2), invalid_argument);
  EXPECT_THROW(device::arena_shape{.window_bytes = 16384}.check(2), invalid_argument);
  EXPECT_THROW(device::arena_shape{.blocks = 65}.check(2), invalid_argument);
}

// Ranks are processes, and the arenas lie in memory that they share.
TEST(device_protocol, ranks_may_be_processes) {
  constexpr int n = 3;
  constexpr std::size_t count = 200;
  auto const shape = cuda_host::small_shape;
  std::size_t const arena = (shape.bytes(n) + 4095) / 4096 * 4096;
  auto* const memory =
      static_cast<std::byte*>(mmap(nullptr, n * arena, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  std::vector<pid_t> children;
  for (int r = 0; r < n; ++r) {
    pid_t const child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      fault report;
      device::link<n> link{.rank = r, .arenas = {}, .shape = shape, .report = &report, .patience = 30'000'000'000};
      for (std::size_t q = 0; q < n; ++q) link.arenas[q] = memory + q * arena;
      std::vector<float> in(count), out(count);
      int wrong = 0;
      for (int call = 0; call < 20; ++call) {
        for (std::size_t i = 0; i < count; ++i)
          in[i] = static_cast<float>(r + 1) * static_cast<float>(i + static_cast<std::size_t>(call));
        device::two_shot<n, float> const kernel{link, in.data(), out.data(), count};
        cuda_host::run_rank({}, {{[&](context& own) { kernel(own); }}}, static_cast<unsigned>(r));
        for (std::size_t i = 0; i < count; ++i)
          wrong += out[i] != 6.0F * static_cast<float>(i + static_cast<std::size_t>(call));
      }
      _exit(wrong != 0 || report.raised != fault::none);
    }
    children.push_back(child);
  }
  for (pid_t const child : children) {
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  munmap(memory, n * arena);
}

}  // namespace
