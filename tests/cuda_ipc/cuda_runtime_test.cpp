#include "../conformance/ranks.hpp"
#include <rondo/error.hpp>
#include <rondo/transports/cuda_ipc.hpp>
#include <rondo/transports/in_process_group.hpp>

#include <array>
#include <cstddef>
#include <gtest/gtest.h>
#include <span>
#include <string>

namespace rondo::testing {
namespace {

bool has_device() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

TEST(cuda_runtime, ranks_without_a_device_get_one_sentence) {
  if (has_device()) GTEST_SKIP() << "this machine has one";
  auto const groups = in_process_group::make(2);
  std::array<std::string, 2> said;
  on_ranks(2, [&](rank_t r) {
    try {
      cuda_ipc::connect(groups[static_cast<std::size_t>(r)]);
    } catch (connect_error const& e) { said[static_cast<std::size_t>(r)] = e.what(); }
  });
  EXPECT_EQ(said[0].find("rondo: rank 0 cannot use a device: cuda"), 0u) << said[0];
  EXPECT_EQ(said[0], said[1]);
}

TEST(cuda_runtime, carries_bytes_between_devices) {
  if (!has_device()) GTEST_SKIP() << "this machine has no GPU";
  auto const groups = in_process_group::make(2);
  on_ranks(2, [&](rank_t r) {
    auto x = cuda_ipc::connect(groups[static_cast<std::size_t>(r)]);
    cuda_runtime const runtime;
    constexpr std::size_t size = 1'000'003;
    auto* const memory = runtime.allocate(x.device(), size);
    auto const out = stream(static_cast<unsigned>(r), size);
    runtime.copy(memory, out.data(), size, nullptr);
    send(x, 1 - r, stream(7, 17));  // from the host, before what the device sends
    EXPECT_EQ(receive(x, 1 - r, 17), stream(7, 17));
    bytes in(size);
    patience const p;
    for (std::size_t sent = 0, received = 0; sent < size || received < size;) {
      auto const w = x.write(1 - r, {memory + sent, size - sent}, false);
      auto const n = x.read(1 - r, std::span(in).subspan(received));
      sent += w, received += n;
      if (w + n == 0) p.pause(x);
    }
    EXPECT_TRUE(in == stream(static_cast<unsigned>(1 - r), size));
    runtime.deallocate(x.device(), memory);
  });
}

}  // namespace
}  // namespace rondo::testing
