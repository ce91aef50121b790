#include "peers/driver.hpp"
#include <rondo/communicator.hpp>
#include <rondo/ops.hpp>
#include <rondo/registered_buffer.hpp>
#include <rondo/transports/bootstrap.hpp>
#include <rondo/transports/shm.hpp>
#include <rondo/transports/tcp.hpp>
#include <rondo/version.hpp>

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace {

using namespace rondo::bench::peers;

std::string name() {
  return "rondo " + std::to_string(RONDO_VERSION_MAJOR) + "." + std::to_string(RONDO_VERSION_MINOR) + "." +
         std::to_string(RONDO_VERSION_PATCH);
}

/// The first series has buffers that rondo has allocated, the second those of a user.
template <class X>
void drive_over(int argc, char** argv, std::shared_ptr<rondo::group> const& ranks) {
  rondo::communicator comm(ranks, X::connect(ranks), {.deadline = std::chrono::seconds(60)});
  driver drive(argc, argv, comm.rank(), comm.size(), name());
  own_buffer users;
  rondo::registered_buffer<float> registered;
  auto const buffers = [&](int series, std::size_t count) {
    if (series > 0) return users.at_least(count);
    if (registered.size() < count) {
      registered = {};
      registered = comm.template allocate<float>(count);
    }
    return place{registered.data(), registered.data()};
  };
  drive.serve(buffers, [&](int, place at, std::size_t count) { comm.all_reduce(std::span(at.in, count), rondo::sum); });
}

}  // namespace

int main(int argc, char** argv) {
  return guarded([&] {
    auto const ranks = rondo::join();
    if (argc > 1 && std::string_view(argv[1]) == "tcp")
      drive_over<rondo::tcp>(argc, argv, ranks);
    else
      drive_over<rondo::shm>(argc, argv, ranks);
  });
}
