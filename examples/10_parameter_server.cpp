// Two ranks keep a line's parameters, one each; three fit it, each to points of its own and at its own pace. None may
// be more than three steps ahead of the slowest.
#include <rondo/async/parameter_server.hpp>
#include <rondo/transports/in_process.hpp>

#include <array>
#include <cmath>
#include <cstdio>

int main() {
  rondo::in_process::run(5, [](auto& comm) {
    rondo::parameter_server shared(comm, 2, {.servers = {0, 1}, .bounds = {.lead = 3}});
    if (shared.serves()) {
      std::array<float, 1> mine{};  // the slope, or the intercept
      auto const seen = shared.serve(mine, [](std::span<float> values, std::span<float const> gradient) noexcept {
        values[0] -= 0.1F * gradient[0];
      });
      std::printf("server %zu: %.3f after %d updates, lead up to %d\n", shared.number(), static_cast<double>(mine[0]),
                  static_cast<int>(seen.updates), static_cast<int>(seen.largest_lead));
      return;
    }
    std::array<float, 2> line{}, gradient{};
    for (int step = 0; step < 300; ++step) {
      shared.pull(line);
      float const x = std::sin(static_cast<float>(step * comm.rank())), y = 2 * x - 1;  // the truth
      float const error = line[0] * x + line[1] - y;
      gradient = {error * x, error};
      shared.push(gradient);
    }
  });
}
