// ZeRO-1: each rank has the moments of AdamW for a third of the weights only. The same fit as in 08_synchronizer.cpp.
#include <rondo/fused/adamw.hpp>
#include <rondo/gradient/sharded.hpp>
#include <rondo/rondo.hpp>
#include <rondo/transports/in_process.hpp>

#include <cstdio>
#include <vector>

int main() {
  rondo::in_process::run(3, [](auto& comm) {
    int const samples = 10 * (comm.rank() + 1);
    std::vector<float> a{0}, b{0}, da(1), db(1);
    std::vector<rondo::parameter> const parameters{{"a", a, da}, {"b", b, db}};
    rondo::adamw const rule{.learning_rate = 0.05, .weight_decay = 0};
    rondo::sharded_optimizer adam(comm, parameters, rule, {.summed = true, .max_norm = 1});
    adam.broadcast_values();
    for (int k = 0; k < 400; ++k) {
      auto step = adam.begin({.weight = static_cast<double>(samples)});
      da[0] = db[0] = 0;
      for (int i = 0; i < samples; ++i) {
        float const x = static_cast<float>(i + comm.rank()) / 30, slope = a[0] * x + b[0] - (3 * x + 1);
        da[0] += slope * x;
        db[0] += slope;
      }
      step.ready(1);
      step.ready(0);
      step.finish();  // reduced, clipped, stepped, and gathered on all ranks
    }
    if (comm.rank() == 0) std::printf("y = %.2f x + %.2f\n", static_cast<double>(a[0]), static_cast<double>(b[0]));
  });
}
