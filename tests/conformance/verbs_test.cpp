#include "../vm/needs_rdma.hpp"
#include "transport_suite.hpp"
#include <rondo/transports/in_process_group.hpp>
#include <rondo/transports/verbs.hpp>

namespace rondo::testing {
namespace {

template <int Rails, std::size_t Stripe, int Slots, std::size_t SlotBytes>
struct over_verbs {
  static constexpr bool notices_departure = true;

  template <class Body>
  static void world(int n, Body body) {
    NEEDS_RDMA();
    auto const groups = in_process_group::make(n);
    on_ranks(n, [&](rank_t r) {
      verbs_options options;
      options.rails = Rails;
      options.stripe = Stripe;
      options.slots = Slots;
      options.slot_bytes = SlotBytes;
      auto x = verbs::connect(groups[static_cast<std::size_t>(r)], options);
      body(r, x);
    });
  }
};

using backends =
    ::testing::Types<over_verbs<1, 1, 32, 16 << 10>, over_verbs<1, 1, 4, 4 << 10>, over_verbs<2, 10'001, 8, 4 << 10>>;
INSTANTIATE_TYPED_TEST_SUITE_P(verbs, transport_suite, backends);

}  // namespace
}  // namespace rondo::testing
