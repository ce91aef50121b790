// Four stages of a net of one number each, y = w4 w3 w2 w1 x, fit y = x with eight microbatches a step. What one stage
// sends travels while it computes, in both directions.
#include <rondo/pipeline/channel.hpp>
#include <rondo/pipeline/one_f_one_b.hpp>
#include <rondo/transports/in_process.hpp>

#include <array>
#include <cstdio>
#include <vector>

int main() {
  rondo::in_process::run(4, [](auto& comm) {
    bool const first = comm.rank() == 0, last = comm.rank() == comm.size() - 1;
    rondo::rank_t const before = first ? rondo::nobody : comm.rank() - 1,
                        behind = last ? rondo::nobody : comm.rank() + 1;
    rondo::one_f_one_b const schedule{comm.size(), 8};
    rondo::channel activations(comm, before, behind, 1), slopes(comm, behind, before, 1);
    float weight = 0.5F;
    std::array<float, 8> inputs{};
    for (int step = 0; step < 200; ++step) {
      float gradient = 0;
      for (int i = 0; i < schedule.steps(); ++i) {
        auto const [what, number] = schedule.at(comm.rank(), i);
        float& x = inputs[static_cast<std::size_t>(number)];
        if (what == rondo::pass::forward) {
          x = first ? static_cast<float>(number + 1) / 8 : activations.receive()[0];
          activations.send(std::array{weight * x});
        } else {
          float const truth = static_cast<float>(number + 1) / 8,
                      slope = last ? weight * x - truth : slopes.receive()[0];
          gradient += slope * x;
          slopes.send(std::array{slope * weight});
        }
      }
      weight -= 0.02F * gradient;
    }
    comm.all_reduce(std::span(&weight, 1), rondo::prod);
    if (first) std::printf("y = %.3f x\n", static_cast<double>(weight));
  });
}
