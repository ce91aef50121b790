#include "peers/driver.hpp"
#include <rondo/communicator.hpp>
#include <rondo/ops.hpp>
#include <rondo/transports/bootstrap.hpp>
#include <rondo/transports/shm.hpp>
#include <rondo/transports/tcp.hpp>
#include <rondo/version.hpp>

#include <optional>

namespace {

using namespace rondo::bench::peers;

std::string name() {
  return "rondo " + std::to_string(RONDO_VERSION_MAJOR) + "." + std::to_string(RONDO_VERSION_MINOR) + "." +
         std::to_string(RONDO_VERSION_PATCH);
}

template <class X>
void drive_over(int argc, char** argv, std::shared_ptr<rondo::group> const& ranks) {
  rondo::communicator comm(ranks, X::connect(ranks), {.deadline = std::chrono::seconds(60)});
  driver drive(argc, argv, comm.rank(), comm.size(), name());
  own_buffer buffer;
  drive.serve([&](int, std::size_t count) { return buffer.at_least(count); },
              [&](int, place at, std::size_t count) { comm.all_reduce(std::span(at.in, count), rondo::sum); });
}

}  // namespace

int main(int argc, char** argv) {
  return guarded([&] {
    auto const ranks = rondo::join();
    if (std::string_view(argv[1]) == "tcp")
      drive_over<rondo::tcp>(argc, argv, ranks);
    else
      drive_over<rondo::shm>(argc, argv, ranks);
  });
}
