// A fused optimizer step against the same step as separate passes: all_reduce, global norm, clip, AdamW on all weights.
//
//   rondo launch -n 2 -- sync_and_step [elements] [rounds]
//
// Gradients and weights are bfloat16 in registered buffers, weights in full precision and moments are float. `separate`
// adds up the gradients in bfloat16, the fastest way there is; `separate, exact` in float, as the fused step does, and
// must end with the same bits. The three take turns; a time is that of the slowest rank.
#include <rondo/fused/adamw.hpp>
#include <rondo/fused/sync_and_step.hpp>
#include <rondo/rondo.hpp>
#include <rondo/transports/bootstrap.hpp>
#include <rondo/transports/shm.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <vector>

namespace {

using namespace rondo;

constexpr double max_norm = 1;
constexpr std::size_t block = 1024;

/// The state of a rank that updates all weights.
struct whole_state {
  std::vector<float> master, mean, square;
  std::uint64_t steps = 0;

  explicit whole_state(std::span<bfloat16 const> weights)
      : master(weights.begin(), weights.end()), mean(weights.size()), square(weights.size()) {}
};

/// AdamW on all weights, in one pass; `gradient(first, count)` is where floats of the gradient lie.
template <class Gradient>
void step_all(whole_state& s, float factor, std::span<bfloat16> weights, Gradient&& gradient) {
  auto const update = adamw{}.at(++s.steps);
  for (std::size_t i = 0; i < weights.size(); i += block) {
    std::size_t const n = std::min(block, weights.size() - i);
    detail::step_with<bfloat16>(detail::best_instruction_set(), update,
                                detail::step_operands<2>{gradient(i, n),
                                                         factor,
                                                         s.master.data() + i,
                                                         {s.mean.data() + i, s.square.data() + i},
                                                         reinterpret_cast<std::byte*>(weights.data() + i)},
                                n);
  }
}

/// A block of the gradients as floats.
float const* widened(std::span<bfloat16 const> from, std::size_t first, std::size_t count) {
  alignas(64) static std::array<float, block> floats;
  detail::convert_range<float, bfloat16>(reinterpret_cast<std::byte*>(floats.data()),
                                         reinterpret_cast<std::byte const*>(from.data() + first), count);
  return floats.data();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t const n = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 25'000'000;
  int const rounds = argc > 2 ? std::atoi(argv[2]) : 11;
  auto const ranks = join();
  communicator comm(ranks, shm::connect(ranks));
  float const mean_of = 1 / static_cast<float>(comm.size());

  std::vector<bfloat16> const given = [&] {
    std::vector<bfloat16> v;
    std::minstd_rand random(static_cast<unsigned>(comm.rank()) + 1);
    for (std::size_t i = 0; i < n; ++i) v.push_back(bfloat16(static_cast<float>(random() % 2001) / 1000 - 1));
    return v;
  }();
  auto gradients = comm.allocate<bfloat16>(n), summed = comm.allocate<bfloat16>(n);
  auto exact = comm.allocate<float>(n);
  std::array weights{comm.allocate<bfloat16>(n), comm.allocate<bfloat16>(n), comm.allocate<bfloat16>(n)};
  for (auto& w : weights)
    for (std::size_t i = 0; i < n; ++i) w[i] = bfloat16(static_cast<float>(i % 1000) / 1000);
  std::copy(given.begin(), given.end(), gradients.begin());

  sharded_state state{std::span<bfloat16 const>(weights[0]), comm.rank(), comm.size(), adamw{}};
  whole_state separate{std::span<bfloat16 const>(weights[1])}, same_bits{std::span<bfloat16 const>(weights[2])};

  std::array<std::function<void()>, 3> const ways{
      [&] { sync_and_step(comm, gradients, weights[0], state, {.max_norm = max_norm}); },
      [&] {
        comm.all_reduce(summed, sum);
        sum_of_squares squares;
        for (std::size_t i = 0; i < n; i += block) {
          std::size_t const count = std::min(block, n - i);
          squares.add({widened(summed, i, count), count});
        }
        float const factor = mean_of * clip_factor(squares.total() * mean_of * mean_of, max_norm);
        step_all(separate, factor, weights[1],
                 [&](std::size_t first, std::size_t count) { return widened(summed, first, count); });
      },
      [&] {
        comm.all_reduce(exact, avg);
        std::array<double, 1> total{};
        sum_of_squares squares;
        squares.add(std::span<float const>(exact).subspan(state.own().first, state.own().count));
        total[0] = squares.total();
        comm.all_reduce(total, sum, {.ordered = true});
        step_all(same_bits, clip_factor(total[0], max_norm), weights[2],
                 [&](std::size_t first, std::size_t) { return exact.data() + first; });
      },
  };

  std::array<std::vector<double>, 3> ms;
  for (int round = -1; round < rounds; ++round) {
    std::copy(given.begin(), given.end(), summed.begin());
    std::transform(given.begin(), given.end(), exact.begin(), [](bfloat16 x) { return static_cast<float>(x); });
    for (std::size_t k = 0; k < ways.size(); ++k) {
      comm.barrier();
      auto const start = std::chrono::steady_clock::now();
      ways[k]();
      std::array<double, 1> took{
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count()};
      comm.all_reduce(took, max);
      if (round >= 0) ms[k].push_back(took[0]);
    }
  }

  bool const same = std::memcmp(weights[0].data(), weights[2].data(), n * sizeof(bfloat16)) == 0;
  if (comm.rank() == 0) {
    std::printf("%zu weights, %d ranks, %d rounds\n%16s %9s %9s %9s %16s\n", n, comm.size(), rounds, "", "median ms",
                "least", "most", "fused is faster");
    char const* const names[] = {"fused", "separate", "separate, exact"};
    for (std::size_t k = 0; k < ways.size(); ++k) {
      std::vector<double> ratio;
      for (std::size_t i = 0; i < ms[k].size(); ++i) ratio.push_back(ms[k][i] / ms[0][i]);
      auto const [least, most] = std::minmax_element(ms[k].begin(), ms[k].end());
      std::printf("%16s %9.1f %9.1f %9.1f %15.2fx\n", names[k], median(ms[k]), *least, *most, median(ratio));
    }
  }
  std::printf("rank %d: fused and exact end with %s bits\n", comm.rank(), same ? "the same" : "DIFFERENT");
  return same ? 0 : 1;
}
