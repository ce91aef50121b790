#include "../conformance/transport_suite.hpp"
#include "../multi/bootstrap_job.hpp"
#include "backends.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

namespace rondo::testing {
namespace {

/// Every rank a process of its own, which numbers the devices in a way of its own.
template <device_sharing Way>
struct over_processes {
  static constexpr bool notices_departure = false;
  static constexpr std::size_t larger_than_its_buffers = (2 << 20) + 1;  // than the host's ring, too

  template <class Body>
  static void world(int n, Body body) {
    bootstrap_test::job const job(n);
    std::vector<bootstrap_test::process> ranks;
    for (rank_t r = 0; r < n; ++r) ranks.emplace_back([&, r] { return run(job, r, body); });
    for (rank_t r = 0; r < n; ++r) EXPECT_EQ(ranks[static_cast<std::size_t>(r)].wait(), 0) << "rank " << r;
  }

 private:
  template <class Body>
  static int run(bootstrap_test::job const& job, rank_t r, Body& body) {
    ::alarm(100);
    platform const machine;
    std::vector<int> visible(static_cast<std::size_t>(machine.devices));
    std::iota(visible.begin(), visible.end(), 0);
    std::rotate(visible.begin(), visible.begin() + r % machine.devices, visible.end());
    options_type o;
    o.runtime = host_runtime(std::make_shared<host_process>(machine, visible));
    o.ring_bytes = 64 << 10;
    o.sharing = Way;
    {
      with_buffers<buffers::of_either> x(o, transport_type::connect(job.join(r), o));
      body(r, x);
    }
    for (auto const& fault : o.runtime.inside().faults()) ADD_FAILURE() << fault;
    EXPECT_EQ(o.runtime.inside().allocations(), 0u) << "memory was left behind";
    return ::testing::Test::HasFailure() ? 1 : 0;
  }
};

using backends_of_processes =
    ::testing::Types<over_processes<device_sharing::files>, over_processes<device_sharing::handles>>;
INSTANTIATE_TYPED_TEST_SUITE_P(cuda_ipc_processes, transport_suite, backends_of_processes);

}  // namespace
}  // namespace rondo::testing
