#include <rondo/communicator.hpp>
#include <rondo/ops.hpp>
#include <rondo/transports/in_process.hpp>
#include <rondo/version.hpp>

#include <cstdio>
#include <vector>

// Prints the version if three ranks agree on a sum, for the script that compares it with what the package says.
int main() {
  bool right = true;
  rondo::in_process::run(3, [&](auto& ranks) {
    std::vector<float> gradients(1000, static_cast<float>(ranks.rank()));
    ranks.all_reduce(gradients, rondo::sum);
    if (ranks.rank() == 0) right = gradients == std::vector<float>(1000, 3.0F);
  });
  std::printf("%d.%d.%d\n", RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH);
  return right ? 0 : 1;
}
