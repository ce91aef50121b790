// Two buckets travel while this thread computes the next one. Ranks are threads here, so the example runs by itself.
#include <rondo/rondo.hpp>
#include <rondo/transports/in_process.hpp>

#include <array>
#include <cstdio>
#include <vector>

int main() {
  rondo::in_process::run(4, [](auto& comm) {
    std::array<std::vector<float>, 3> buckets;
    std::array<rondo::work, 3> under_way;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      buckets[i].assign(100'000, static_cast<float>(comm.rank()) + static_cast<float>(i));  // the backward pass
      under_way[i] = comm.start_all_reduce(buckets[i], rondo::avg);
    }
    for (auto& call : under_way) call.wait();
    if (comm.rank() == 0)
      for (auto const& b : buckets) std::printf("mean %g\n", static_cast<double>(b[0]));
  });
}
