#include "transport_suite.hpp"
#include <rondo/transports/in_process.hpp>
#include <rondo/transports/in_process_group.hpp>

namespace rondo::testing {
namespace {

struct between_threads {
  static constexpr bool notices_departure = false;

  template <class Body>
  static void world(int n, Body body) {
    auto const groups = in_process_group::make(n);
    on_ranks(n, [&](rank_t r) {
      auto x = in_process::connect(groups[static_cast<std::size_t>(r)]);
      body(r, x);
    });
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(in_process, transport_suite, between_threads);

}  // namespace
}  // namespace rondo::testing
