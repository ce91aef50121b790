// What becomes of a reduced value is up to its owner, who has it in a register: here a moving average of the gradient
// is updated and the gradient itself stored as bfloat16, in the pass over memory that adds up the ranks.
#include <rondo/rondo.hpp>
#include <rondo/transports/in_process.hpp>

#include <cstdio>
#include <vector>

int main() {
  rondo::in_process::run(4, [](auto& comm) {
    std::size_t const block = 100'000;
    std::vector<float> gradients(4 * block), average(block);
    std::vector<rondo::bfloat16> mean(block);
    for (int step = 0; step < 3; ++step) {
      for (float& g : gradients) g = static_cast<float>(step + comm.rank());
      comm.reduce_scatter(gradients, mean, rondo::avg, [&average](std::size_t i, float g) noexcept {
        average[i] = 0.9F * average[i] + 0.1F * g;
        return rondo::bfloat16(g);
      });
    }
    if (comm.rank() == 0)
      std::printf("last mean %g, average %g\n", static_cast<double>(mean[0]), static_cast<double>(average[0]));
  });
}
