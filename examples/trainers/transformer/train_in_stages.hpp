#pragma once

#include "options.hpp"
#include "pipelined.hpp"
#include "text.hpp"
#include "trainer.hpp"
#include <rondo/fused/clip.hpp>
#include <rondo/pipeline/grid.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace transformer {

/// As train(), with the blocks spread over stages, and the batches over the pipelines.
inline void train_in_stages(communicator& comm, options const& chosen,
                            std::function<void(std::size_t, progress const&)> const& observe) {
  using clock = std::chrono::steady_clock;
  rondo::grid world(comm, {.pipeline = chosen.stages});
  auto const pipelines = static_cast<std::size_t>(world.data.size()),
             mine = static_cast<std::size_t>(world.data.rank());
  auto const count = static_cast<std::size_t>(chosen.microbatches), each = chosen.batch / (pipelines * count);
  if (chosen.batch % (pipelines * count) != 0)
    throw std::invalid_argument("--batch must be a multiple of " + std::to_string(pipelines * count) +
                                ", so that every pipeline has as many microbatches of one size");
  auto const time = static_cast<std::size_t>(chosen.shape.time);
  text const source(chosen.text);
  pipelined<float, rondo::any_transport> pipeline(world.pipeline, chosen.shape, chosen.seed, chosen.microbatches,
                                                  each * time);
  auto& net = pipeline.net();
  std::vector<rondo::parameter> parameters;
  net.each_tensor(
      [&](auto const& name, auto values, auto gradient) { parameters.emplace_back(name, values, gradient); });
  whole_adamw adam(world.data, parameters, {.learning_rate = chosen.rate, .weight_decay = chosen.decay},
                   {.buckets = {.first = chosen.first_bucket, .most = chosen.bucket},
                    .overlap = chosen.overlap,
                    .summed = true,
                    .call = {.ordered = chosen.ordered}});
  adam.broadcast_values();

  for (std::size_t k = 1; k <= chosen.steps; ++k) {
    std::vector<sequences> batches;
    for (std::size_t m = mine * count; m < (mine + 1) * count; ++m)
      batches.push_back(source.draw(chosen.seed, k, m * each, (m + 1) * each, time));
    std::array loss{0.0};
    auto const start = clock::now();
    auto const report = adam.step(
        static_cast<double>(count * each * time),
        [&](auto const& ready) {
          std::fill(net.gradient().begin(), net.gradient().end(), 0.0F);
          loss[0] = static_cast<double>(pipeline.run(batches, ready));
        },
        [&](rondo::gradient_report& r) {  // the norm is one over all stages
          std::array squares{r.norm * r.norm};
          world.pipeline.all_reduce(squares, rondo::sum);
          r.norm = std::sqrt(squares[0]);
          r.finite = std::isfinite(r.norm);
          float const clip = rondo::clip_factor(squares[0], chosen.max_norm);
          r.clip = static_cast<double>(clip);
          return clip;
        });
    auto const wall = clock::now() - start;
    comm.all_reduce(loss, rondo::sum);
    observe(k, {loss[0] / static_cast<double>(chosen.batch * time), report, wall});
  }
  adam.check_values();
}

}  // namespace transformer
