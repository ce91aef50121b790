// What passes between two threads: a flag there and back, and calls of two ranks by either way of running a schedule.
#include <rondo/ops.hpp>
#include <rondo/schedule/recursive_doubling.hpp>
#include <rondo/schedule/ring.hpp>
#include <rondo/transports/in_process.hpp>

#include <atomic>
#include <benchmark/benchmark.h>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

using namespace rondo;

void flag_round_trip(benchmark::State& state) {
  alignas(64) std::atomic<std::int64_t> there{0};
  alignas(64) std::atomic<std::int64_t> back{0};
  std::int64_t const last = state.max_iterations;
  std::jthread const echo([&] {
    for (std::int64_t i = 1; i <= last; ++i) {
      while (there.load(std::memory_order_acquire) != i) {}
      back.store(i, std::memory_order_release);
    }
  });
  std::int64_t i = 0;
  for ([[maybe_unused]] auto _ : state) {
    there.store(++i, std::memory_order_release);
    while (back.load(std::memory_order_acquire) != i) {}
  }
}

template <class Algorithm>
void all_reduce(benchmark::State& state) {
  auto const bytes = static_cast<std::size_t>(state.range(0));
  in_process::run(2, [&](auto& comm) {
    std::vector<float> values(bytes / sizeof(float));
    auto const call = [&] { comm.template all_reduce<Algorithm>(values, sum); };
    if (comm.rank() == 0)
      for ([[maybe_unused]] auto _ : state) call();
    else
      for (benchmark::IterationCount i = 0; i < state.max_iterations; ++i) call();
  });
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

BENCHMARK(flag_round_trip)->UseRealTime();
BENCHMARK(all_reduce<recursive_doubling>)->Name("eager/all_reduce")->Arg(8)->Arg(1024)->UseRealTime();
BENCHMARK(all_reduce<ring>)->Name("executor/all_reduce")->Arg(64 << 10)->Arg(1 << 20)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
