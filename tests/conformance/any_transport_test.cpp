#include "transport_suite.hpp"
#include <rondo/transports/any_transport.hpp>
#include <rondo/transports/in_process_group.hpp>
#include <rondo/transports/tcp.hpp>

namespace rondo::testing {
namespace {

struct behind_a_virtual_call {
  static constexpr bool notices_departure = true;

  template <class Body>
  static void world(int n, Body body) {
    auto const groups = in_process_group::make(n);
    on_ranks(n, [&](rank_t r) {
      any_transport x(tcp::connect(groups[static_cast<std::size_t>(r)]));
      EXPECT_EQ(x.name(), "tcp");
      body(r, x);
    });
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(any_transport, transport_suite, behind_a_virtual_call);

}  // namespace
}  // namespace rondo::testing
