// Data parallel training in five lines: gradients are averaged over all ranks while the backward pass still runs.
// Each rank fits y = a x + b to samples of its own, of which rank r has 10 (r + 1): the weight of its gradients.
#include <rondo/gradient/synchronizer.hpp>
#include <rondo/rondo.hpp>
#include <rondo/transports/in_process.hpp>

#include <cstdio>
#include <vector>

int main() {
  rondo::in_process::run(3, [](auto& comm) {
    int const samples = 10 * (comm.rank() + 1);
    std::vector<float> a{0}, b{0}, da(1), db(1);
    std::vector<rondo::parameter> const parameters{{"a", a, da}, {"b", b, db}};
    rondo::synchronizer sync(comm, parameters, {.summed = true});  // gradients are sums over samples, not means
    sync.broadcast_values();
    for (int k = 0; k < 300; ++k) {
      auto step = sync.begin({.weight = static_cast<double>(samples)});
      da[0] = db[0] = 0;
      for (int i = 0; i < samples; ++i) {
        float const x = static_cast<float>(i + comm.rank()) / 30, slope = a[0] * x + b[0] - (3 * x + 1);
        da[0] += slope * x;
        db[0] += slope;
      }
      step.ready(1);  // what is ready first: a bucket that is full goes at once
      step.ready(0);
      step.finish();
      a[0] -= da[0];
      b[0] -= db[0];
    }
    if (comm.rank() == 0) std::printf("y = %.2f x + %.2f\n", static_cast<double>(a[0]), static_cast<double>(b[0]));
  });
}
