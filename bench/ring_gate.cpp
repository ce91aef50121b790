// The gate of docs/decisions/001: the ring as a value that the executor interprets, against the same ring written by
// hand over the same byte streams. Two processes, shared memory, float sum in place, interleaved call by call.
//
//   ring_gate [repetitions]
#include <rondo/detail/ring_streams.hpp>
#include <rondo/run/eager.hpp>
#include <rondo/run/executor.hpp>
#include <rondo/schedule/ring.hpp>
#include <rondo/wait.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace rondo;
using clock_type = std::chrono::steady_clock;

constexpr int world = 2;
constexpr std::size_t segment_bytes = std::size_t{512} << 10;
constexpr std::size_t piece = std::size_t{32} << 10;

int segments_for(std::size_t count) {
  return static_cast<int>(std::max<std::size_t>(1, count * sizeof(float) / world / segment_bytes));
}

void add(void const*, std::byte* out, std::byte const* a, std::byte const* b, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    float x, y;
    std::memcpy(&x, a + 4 * i, 4);
    std::memcpy(&y, b + 4 * i, 4);
    x += y;
    std::memcpy(out + 4 * i, &x, 4);
  }
}

void by_schedule(detail::ring_streams& streams, std::vector<float>& data, std::uint64_t sequence,
                 run::workspace& memory) {
  std::size_t const n = data.size();
  auto* const base = reinterpret_cast<std::byte*>(data.data());
  std::array<run::chunk, world> const chunks{
      {{base, base, n / 2}, {base + n / 2 * sizeof(float), base + n / 2 * sizeof(float), n - n / 2}}};
  run::arithmetic const math{sizeof(float), add};
  run::marks marks(streams, {.sequence = sequence, .count = n}, memory);
  std::vector<std::uint8_t> merged;  // stays empty: in place nothing moves
  auto const finish = [](auto&& call) {
    while (!call.done())
      if (!call.poll()) relax();
  };
  if (n * sizeof(float) / world <= run::eager_bytes)
    finish(run::eager(ring::all_reduce{world}, streams, chunks, math, marks, merged, false));
  else
    finish(run::executor(ring::all_reduce{world}, streams, chunks, math, marks, merged, false, segments_for(n)));
}

void by_hand(detail::ring_streams& streams, std::vector<float>& data, std::uint64_t sequence) {
  rank_t const me = streams.rank(), right = (me + 1) % world, left = (me + world - 1) % world;
  std::size_t const n = data.size();
  auto* const base = reinterpret_cast<std::byte*>(data.data());
  fingerprint const mark{.sequence = sequence, .count = n};
  while (streams.write(right, std::as_bytes(std::span(&mark, 1)), true) == 0) relax();
  bool greeted = false;
  int const segments = segments_for(n);
  for (int k = 0; k < segments; ++k) {
    auto const span_of = [&](int c) {
      std::size_t const from = n * static_cast<std::size_t>(c) / world,
                        to = n * static_cast<std::size_t>(c + 1) / world;
      std::size_t const each = ((to - from) / static_cast<std::size_t>(segments) / 16 + 1) * 16;
      std::size_t const a = std::min(to, from + each * static_cast<std::size_t>(k));
      std::size_t const b = k + 1 == segments ? to : std::min(to, a + each);
      return std::span(base + a * sizeof(float), (b - a) * sizeof(float));
    };
    for (int i = 0; i < 2 * (world - 1); ++i) {
      auto const wrap = [](int x) { return (x % world + world) % world; };
      auto const out = span_of(wrap(me - i)), in = span_of(wrap(me - i - 1));
      std::size_t sent = 0, got = 0;
      while (sent < out.size() || got < in.size() || !greeted) {
        bool moved = false;
        if (sent < out.size())
          if (auto const m = streams.write(right, out.subspan(sent, std::min(piece, out.size() - sent)), false);
              m != 0) {
            sent += m;
            moved = true;
          }
        if (!greeted) {
          auto const bytes = streams.readable(left, sizeof mark);
          if (!bytes.empty()) {
            if (std::memcmp(bytes.data(), &mark, sizeof mark) != 0) std::abort();
            streams.consume(left, sizeof mark);
            greeted = true;
          }
        } else if (got < in.size()) {
          if (i < world - 1) {
            auto const bytes = streams.readable(left, sizeof(float));
            std::size_t const count = std::min({bytes.size(), in.size() - got, piece}) / sizeof(float);
            if (count != 0) {
              add(nullptr, in.data() + got, in.data() + got, bytes.data(), count);
              streams.consume(left, count * sizeof(float));
              got += count * sizeof(float);
              moved = true;
            }
          } else if (auto const m = streams.read(left, in.subspan(got, std::min(piece, in.size() - got))); m != 0) {
            got += m;
            moved = true;
          }
        }
        if (!moved) relax();
      }
    }
  }
}

struct shared_state {
  std::atomic<int> arrived{0};
  std::array<std::atomic<std::int64_t>, world> nanoseconds{};
};

void meet(shared_state& s, int& phase) {
  phase += world;
  s.arrived.fetch_add(1);
  while (s.arrived.load() < phase) relax();
}

void rank_main(rank_t rank, std::vector<detail::inbox> const& inboxes, detail::inbox_layout layout,
               shared_state& shared, int repetitions) {
  detail::ring_streams streams(rank, layout, inboxes);
  int phase = 0;
  std::uint64_t sequence = 0;
  run::workspace memory(world);
  if (rank == 0) std::printf("%12s %12s %12s %9s %9s %9s\n", "bytes", "hand us", "schedule us", "ratio", "low", "high");
  for (std::size_t bytes = 8; bytes <= std::size_t{64} << 20; bytes *= 8) {
    std::vector<float> data(bytes / sizeof(float));
    int const calls = bytes <= 4096 ? 2000 : bytes <= std::size_t{1} << 20 ? 200 : 10;
    std::vector<double> hand, schedule, ratio;
    for (int r = 0; r < repetitions; ++r) {
      std::array<std::vector<double>, 2> us;
      for (int call = 0; call < 2 * calls; ++call) {
        std::fill(data.begin(), data.end(), 1.0F);
        meet(shared, phase);
        auto const start = clock_type::now();
        ++sequence;
        if (call % 2 == 0)
          by_hand(streams, data, sequence);
        else
          by_schedule(streams, data, sequence, memory);
        shared.nanoseconds[static_cast<std::size_t>(rank)] =
            std::chrono::duration_cast<std::chrono::nanoseconds>(clock_type::now() - start).count();
        for (float x : data)
          if (x != 2.0F) std::abort();
        meet(shared, phase);
        us[static_cast<std::size_t>(call % 2)].push_back(
            static_cast<double>(std::max(shared.nanoseconds[0].load(), shared.nanoseconds[1].load())) / 1000);
      }
      for (auto& v : us) std::nth_element(v.begin(), v.begin() + calls / 2, v.end());
      hand.push_back(us[0][static_cast<std::size_t>(calls / 2)]);
      schedule.push_back(us[1][static_cast<std::size_t>(calls / 2)]);
      ratio.push_back(schedule.back() / hand.back());
    }
    auto const median = [](std::vector<double> v) {
      std::sort(v.begin(), v.end());
      return v[v.size() / 2];
    };
    if (rank == 0)
      std::printf("%12zu %12.2f %12.2f %9.3f %9.3f %9.3f\n", bytes, median(hand), median(schedule), median(ratio),
                  *std::min_element(ratio.begin(), ratio.end()), *std::max_element(ratio.begin(), ratio.end()));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int const repetitions = argc > 1 ? std::atoi(argv[1]) : 9;
  auto const layout = detail::inbox_layout::of(world);
  std::vector<detail::inbox> const inboxes{detail::make_inbox(layout), detail::make_inbox(layout)};
  auto* const shared =
      new (::mmap(nullptr, sizeof(shared_state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          shared_state;
  pid_t const child = ::fork();
  rank_main(child == 0 ? 1 : 0, inboxes, layout, *shared, repetitions);
  if (child == 0) return 0;
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? 0 : 1;
}
