#include "cases.hpp"
#include "host_world.hpp"
#include <rondo/cuda/fused/sync_and_step.hpp>
#include <rondo/fused/sgd.hpp>

#include <cstddef>
#include <vector>

namespace {

using namespace rondo;
using namespace kernel_cases;
using cuda_host::context;
using cuda_host::launch;

// As in training: gradients are written just before the step and overwritten just after it, weights are read just
// after it, and no rank waits for another one but in the step.
TEST(device_step, what_comes_before_and_after_needs_no_other_order) {
  constexpr int n = 3;
  constexpr std::size_t count = 400, steps = 15;
  cuda_host::world<n> ranks({.blocks = 2, .threads = 2, .haste = 60});
  using kernel = device::sync_and_step<n, float, float, sgd>;
  buffer<device::step_settings<sgd>> const settings(ranks, 1);
  settings[0] = {.rule = {.learning_rate = 0.5}};
  std::vector<buffer<float>> gradients, weights;
  for (int r = 0; r < n; ++r) {
    gradients.emplace_back(ranks, count);
    weights.emplace_back(ranks, count);
    std::fill_n(weights.back().data(), count, 1024.0F);
  }
  std::vector<std::vector<launch>> programs(n);
  std::vector<buffer<float>> seen;
  for (std::size_t r = 0; r < n; ++r) {
    shard const own = shard_of(count, static_cast<int>(r), n);
    buffer<float> const reduced(ranks, own.count), master(ranks, own.count);
    buffer<device::step_outcome> const outcome(ranks, 1);
    std::fill_n(master.data(), own.count, 1024.0F);
    outcome[0] = {};
    kernel step{.ranks = ranks.link(static_cast<int>(r)),
                .gradients = {},
                .weights = {},
                .count = count,
                .reduced = reduced.data(),
                .master = master.data(),
                .moments = nullptr,
                .settings = settings.data(),
                .outcome = outcome.data()};
    for (std::size_t q = 0; q < n; ++q) step.gradients[q] = gradients[q].data(), step.weights[q] = weights[q].data();
    auto const write = [to = gradients[r].data()](float value) {
      return launch{[to, value](context& own) {
        for (std::size_t i = own.block() * own.threads() + own.thread(); i < count; i += own.blocks() * own.threads())
          to[i] = value;
      }};
    };
    for (std::size_t k = 0; k < steps; ++k) {
      programs[r].push_back(write(static_cast<float>(2 * (k % 4) + r)));  // the mean is 2 (k % 4) + 1
      programs[r].push_back({[step](context& own) { step(own); }});
      seen.emplace_back(ranks, count);
      programs[r].push_back({[from = weights[r].data(), to = seen.back().data()](context& own) {
        for (std::size_t i = own.block() * own.threads() + own.thread(); i < count; i += own.blocks() * own.threads())
          to[i] = from[i];
      }});
      programs[r].push_back(write(1e9F));
    }
  }
  ranks.run_mixed(programs);
  for (std::size_t r = 0; r < n; ++r) {
    float expected = 1024;
    for (std::size_t k = 0; k < steps; ++k) {
      expected -= 0.5F * static_cast<float>(2 * (k % 4) + 1);
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(seen[r * steps + k][i], expected) << "rank " << r << " step " << k << " element " << i;
    }
  }
}

}  // namespace
