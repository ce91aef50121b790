#include "transport_suite.hpp"
#include <rondo/transports/in_process_group.hpp>
#include <rondo/transports/tcp.hpp>

namespace rondo::testing {
namespace {

template <int Streams, std::size_t Stripe, int Buffer>
struct over_tcp {
  static constexpr bool notices_departure = true;

  template <class Body>
  static void world(int n, Body body) {
    auto const groups = in_process_group::make(n);
    on_ranks(n, [&](rank_t r) {
      tcp_options options;
      options.streams = Streams;
      options.stripe = Stripe;
      options.send_buffer = options.receive_buffer = Buffer;
      auto x = tcp::connect(groups[static_cast<std::size_t>(r)], options);
      body(r, x);
    });
  }
};

using backends = ::testing::Types<over_tcp<1, 1, 0>, over_tcp<4, 64 << 10, 0>, over_tcp<3, 1001, 4096>>;
INSTANTIATE_TYPED_TEST_SUITE_P(tcp, transport_suite, backends);

}  // namespace
}  // namespace rondo::testing
