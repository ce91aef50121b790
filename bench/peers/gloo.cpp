#include "peers/driver.hpp"

#include <filesystem>
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

namespace {

int number(char const* variable) {
  char const* const text = std::getenv(variable);
  if (text == nullptr) throw std::runtime_error(std::string(variable) + " is not set: start this with rondo launch.");
  return std::atoi(text);
}

void all_reduce(std::shared_ptr<gloo::Context> const& context, float* data, std::size_t count) {
  gloo::AllreduceOptions options(context);
  options.setOutput(data, count);
  options.setReduceFunction(static_cast<void (*)(void*, void const*, void const*, std::size_t)>(&gloo::sum<float>));
  gloo::allreduce(options);
}

}  // namespace

/// The first argument is an empty folder in which the ranks find each other. It is gone when they have.
int main(int argc, char** argv) {
  using namespace rondo::bench::peers;
  return guarded([&] {
    gloo::transport::tcp::attr loopback;
    loopback.hostname = "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(loopback);
    auto const context = std::make_shared<gloo::rendezvous::Context>(number("RANK"), number("WORLD_SIZE"));
    gloo::rendezvous::FileStore store(argv[1]);
    context->connectFullMesh(store, device);
    driver drive(argc, argv, context->rank, context->size, "Gloo");
    drive.barrier();
    if (context->rank == 0) std::filesystem::remove_all(argv[1]);
    own_buffer buffer;
    drive.serve([&](int, std::size_t count) { return buffer.at_least(count); },
                [&](int, place at, std::size_t count) { all_reduce(context, at.in, count); });
  });
}
