#include "../conformance/transport_suite.hpp"
#include "backends.hpp"
#include <rondo/transports/host_staged.hpp>
#include <rondo/transports/tcp.hpp>

#include <cstddef>

namespace rondo::testing {
namespace {

/// Devices that do not reach each other: what is on them goes through the host.
struct through_the_host {
  static constexpr bool notices_departure = true;

  template <class Body>
  static void world(int n, Body body) {
    auto const groups = in_process_group::make(n);
    auto const places = places_of(n, place::own_process);
    on_ranks(n, [&](rank_t r) {
      using staged = host_staged<tcp, host_runtime>;
      auto const& o = places[static_cast<std::size_t>(r)];
      auto const& g = groups[static_cast<std::size_t>(r)];
      with_buffers<buffers::of_either, staged> x(
          o, staged::connect(g, {.runtime = o.runtime, .stream = nullptr, .piece_bytes = 10'007}));
      body(r, x);
    });
    for (auto const& o : places)
      for (auto const& fault : o.runtime.inside().faults()) ADD_FAILURE() << fault;
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(host_staged, transport_suite, through_the_host);

using more_backends =
    ::testing::Types<over_devices<place::one_process, device_sharing::automatic, buffers::of_the_device>,
                     over_devices<place::one_process, device_sharing::automatic, buffers::of_either>,
                     over_devices<place::own_process, device_sharing::files, buffers::of_the_device>,
                     over_devices<place::own_process, device_sharing::files, buffers::of_either>,
                     over_devices<place::own_process, device_sharing::automatic, buffers::of_the_host>>;
INSTANTIATE_TYPED_TEST_SUITE_P(cuda_ipc, transport_suite, more_backends);

}  // namespace
}  // namespace rondo::testing
