#include "transport_suite.hpp"
#include <rondo/transports/in_process_group.hpp>
#include <rondo/transports/shm.hpp>

namespace rondo::testing {
namespace {

// The ranks are threads here, which changes nothing for memory that is handed over by socket and mapped by each of
// them.
struct through_shared_memory {
  static constexpr bool notices_departure = false;

  template <class Body>
  static void world(int n, Body body) {
    auto const groups = in_process_group::make(n);
    on_ranks(n, [&](rank_t r) {
      auto x = shm::connect(groups[static_cast<std::size_t>(r)]);
      body(r, x);
    });
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(shm, transport_suite, through_shared_memory);

}  // namespace
}  // namespace rondo::testing
