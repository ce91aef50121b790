#include "addressable_probe.hpp"
#include "peers/driver.hpp"
#include <rondo/transports/environment.hpp>

/// The machine's limit as a system like the others. Its series are pull, push and push with non-temporal stores, from
/// inputs to outputs, then the last two in place.
int main(int argc, char** argv) {
  using namespace rondo::bench;
  return peers::guarded([&] {
    auto const who = rondo::environment::detect();
    peers::driver drive(argc, argv, who.rank, who.size, "limit");
    shared_buffers const apart(drive.shared(), who.size), in_place(drive.shared(), who.size, true);
    auto const buffers = [&](int series) -> shared_buffers const& { return series < 3 ? apart : in_place; };
    drive.serve(
        [&](int series, std::size_t) {
          return peers::place{buffers(series).in(who.rank), buffers(series).out(who.rank)};
        },
        [&](int series, peers::place at, std::size_t count) {
          if (series == 0) {
            drive.barrier();
            pull_sums(apart, who.size, 0, count, at.out);
          } else {
            push_sums(buffers(series), who.rank, who.size, count, series % 2 == 0);
            drive.barrier();
          }
        });
  });
}
