#include "../vm/needs_rdma.hpp"
#include "transport_suite.hpp"
#include <rondo/transports/in_process_group.hpp>
#include <rondo/transports/verbs.hpp>

#include <cstddef>
#include <string>

namespace rondo::testing {
namespace {

/// With several adapters, and where they do not share them as rails, the ranks use them in turn.
std::string device_of(rank_t r) {
  detail::verbs_ports const found([] {
    verbs_options all;
    all.rails = 64;
    return all;
  }());
  return "=" + found.ports()[static_cast<std::size_t>(r) % found.ports().size()].device->name();
}

template <int Rails, std::size_t Stripe, int Slots, std::size_t SlotBytes>
struct over_verbs {
  static constexpr bool notices_departure = true;
  static constexpr std::size_t larger_than_its_buffers = (std::size_t{2} << 20) + 1;

  template <class Body>
  static void world(int n, Body body) {
    NEEDS_RDMA();
    auto const groups = in_process_group::make(n);
    on_ranks(n, [&](rank_t r) {
      verbs_options options;
      options.rails = Rails;
      if (Rails == 1) options.devices = device_of(r);
      options.stripe = Stripe;
      options.slots = Slots;
      options.slot_bytes = SlotBytes;
      auto x = verbs::connect(groups[static_cast<std::size_t>(r)], options);
      body(r, x);
    });
  }
};

using backends =
    ::testing::Types<over_verbs<1, 1, 32, 16 << 10>, over_verbs<1, 1, 4, 1 << 10>, over_verbs<2, 10'001, 8, 4 << 10>>;
INSTANTIATE_TYPED_TEST_SUITE_P(verbs, transport_suite, backends);

}  // namespace
}  // namespace rondo::testing
