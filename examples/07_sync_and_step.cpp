// A whole optimizer step in one call: mean of the gradients of all ranks, clipping by their global norm, AdamW on the
// weights that this rank owns, and the new weights to all ranks. Every rank keeps state for its own share only.
#include <rondo/fused/adamw.hpp>
#include <rondo/fused/sync_and_step.hpp>
#include <rondo/rondo.hpp>
#include <rondo/transports/in_process.hpp>

#include <cstdio>
#include <span>

int main() {
  rondo::in_process::run(3, [](auto& comm) {
    std::size_t const n = 100'000;
    auto gradients = comm.template allocate<rondo::bfloat16>(n), weights = comm.template allocate<rondo::bfloat16>(n);
    for (auto& w : weights) w = rondo::bfloat16(1.0F);
    rondo::sharded_state state(std::span<rondo::bfloat16 const>(weights), comm.rank(), comm.size(),
                               rondo::adamw{.learning_rate = 0.01});
    for (int step = 0; step < 5; ++step) {
      for (std::size_t i = 0; i < n; ++i) gradients[i] = rondo::bfloat16(2 * weights[i]);  // of the sum of squares
      auto const found = rondo::sync_and_step(comm, gradients, weights, state, {.max_norm = 1.0});
      if (comm.rank() == 0) std::printf("norm %.1f, weight %g\n", found.norm, static_cast<double>(weights[0]));
    }
  });
}
