#pragma once

#include "../fashion_mnist/hash.hpp"
#include "model.hpp"
#include "options.hpp"
#include "text.hpp"
#include <rondo/fused/adamw.hpp>
#include <rondo/gradient/sharded.hpp>
#include <rondo/gradient/synchronizer.hpp>
#include <rondo/rondo.hpp>
#include <rondo/transports/any_transport.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <vector>

namespace transformer {

using communicator = rondo::communicator<rondo::any_transport>;

/// AdamW on all weights of every rank, from gradients that a synchronizer has averaged.
class whole_adamw {
 public:
  whole_adamw(communicator& comm, std::vector<rondo::parameter> const& parameters, rondo::adamw const& rule,
              rondo::gradient_options const& options)
      : sync_(comm, parameters, options), rule_(rule) {
    for (auto const& p : parameters) moments_.push_back({std::vector<float>(p.count), std::vector<float>(p.count)});
  }

  void broadcast_values() { sync_.broadcast_values(); }
  void check_values() { sync_.check_values(); }

  /// Calls backward(ready), which calls ready(tensor) for each, and makes a step. Before that, judge(report) may find
  /// out more about the gradient, and returns what to multiply it with.
  template <class Backward, class Judge>
  rondo::gradient_report step(double weight, Backward&& backward, Judge&& judge) {
    auto step = sync_.begin({.weight = weight});
    backward([&](std::size_t id) { step.ready(id); });
    auto report = step.finish();
    float const scale = judge(report);
    if (!report.finite) return report;
    auto const start = std::chrono::steady_clock::now();
    auto const update = rule_.at(++steps_);
    for (std::size_t id = 0; id < moments_.size(); ++id) {
      auto const& p = sync_.parameters()[id];
      auto* const value = static_cast<float*>(p.values);
      auto const* const gradient = static_cast<float const*>(p.gradient);
      auto& [mean, square] = moments_[id];
      for (std::size_t i = 0; i < p.count; ++i) update(scale * gradient[i], value[i], mean[i], square[i]);
    }
    report.update += std::chrono::steady_clock::now() - start;
    return report;
  }
  template <class Backward>
  rondo::gradient_report step(double weight, Backward&& backward) {
    return step(weight, backward, [](auto const&) { return 1.0F; });
  }

 private:
  rondo::synchronizer<rondo::any_transport> sync_;
  rondo::adamw rule_;
  std::vector<std::array<std::vector<float>, 2>> moments_;
  std::uint64_t steps_ = 0;
};

/// The same with the state spread over the ranks.
class sharded_adamw {
 public:
  sharded_adamw(communicator& comm, std::vector<rondo::parameter> const& parameters, rondo::adamw const& rule,
                rondo::gradient_options const& options)
      : adam_(comm, parameters, rule, options) {}

  void broadcast_values() { adam_.broadcast_values(); }
  void check_values() { adam_.check_values(); }

  template <class Backward>
  rondo::gradient_report step(double weight, Backward&& backward) {
    auto step = adam_.begin({.weight = weight});
    backward([&](std::size_t id) { step.ready(id); });
    return step.finish();
  }

 private:
  rondo::sharded_optimizer<rondo::any_transport, rondo::adamw> adam_;
};

/// What a step came to.
struct progress {
  double loss;                    ///< mean over all positions of the global batch
  rondo::gradient_report report;  ///< of this rank
  std::chrono::duration<double> wall;
};

/// Trains a net whose batches are spread over the ranks; calls observe(step, progress) after each step.
template <class Optimizer>
void train(communicator& comm, options const& chosen,
           std::function<void(std::size_t, progress const&)> const& observe) {
  using clock = std::chrono::steady_clock;
  text const source(chosen.text);
  model<float> net(chosen.shape, chosen.seed);
  std::vector<rondo::parameter> parameters;
  net.each_tensor(
      [&](auto const& name, auto values, auto gradient) { parameters.emplace_back(name, values, gradient); });
  Optimizer adam(comm, parameters, {.learning_rate = chosen.rate, .weight_decay = chosen.decay},
                 {.buckets = {.first = chosen.first_bucket, .most = chosen.bucket},
                  .overlap = chosen.overlap,
                  .summed = true,
                  .max_norm = chosen.max_norm,
                  .call = {.ordered = chosen.ordered}});
  adam.broadcast_values();

  auto const ranks = static_cast<std::size_t>(comm.size()), rank = static_cast<std::size_t>(comm.rank());
  auto const time = static_cast<std::size_t>(chosen.shape.time);
  for (std::size_t k = 1; k <= chosen.steps; ++k) {
    sequences const mine =
        source.draw(chosen.seed, k, chosen.batch * rank / ranks, chosen.batch * (rank + 1) / ranks, time);
    std::array loss{0.0};
    auto const start = clock::now();
    auto const report = adam.step(static_cast<double>(mine.tokens.size()), [&](auto const& ready) {
      std::fill(net.gradient().begin(), net.gradient().end(), 0.0F);
      loss[0] = static_cast<double>(net.forward(mine.tokens, mine.next));
      net.backward(ready);
    });
    auto const wall = clock::now() - start;
    comm.all_reduce(loss, rondo::sum);
    observe(k, {loss[0] / static_cast<double>(chosen.batch * time), report, wall});
  }
  adam.check_values();
}

}  // namespace transformer
