#include "addressable_probe.hpp"
#include "peers/driver.hpp"
#include <rondo/transports/environment.hpp>

/// The machine's limit as a system like the others: its series are pull, push, and push with non-temporal stores.
int main(int argc, char** argv) {
  using namespace rondo::bench;
  return peers::guarded([&] {
    auto const who = rondo::environment::detect();
    peers::driver drive(argc, argv, who.rank, who.size, "limit");
    shared_buffers const all(drive.shared(), who.size);
    drive.serve(
        [&](int, std::size_t) {
          return peers::place{all.in(who.rank), all.out(who.rank)};
        },
        [&](int series, peers::place at, std::size_t count) {
          if (series == 0) {
            drive.barrier();
            pull_sums(all, who.size, 0, count, at.out);
          } else {
            push_sums(all, who.rank, who.size, count, series == 2);
            drive.barrier();
          }
        });
  });
}
