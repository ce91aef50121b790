#include "schedule_by_name.hpp"

#include "text.hpp"
#include <rondo/run/families.hpp>

namespace rondo::bench {

void with_schedule(algorithm how, collective what, int ranks, rank_t root,
                   std::function<void(schedule_ref const&)> const& f) {
  using enum collective;
  auto const with = [&]<collective C>() {
    run::with_schedule<C>(how, {ranks, {}}, root, 0, [&](auto const& s) { f(schedule_ref(s)); });
  };
  switch (what) {
    case all_reduce: return with.template operator()<all_reduce>();
    case reduce_scatter: return with.template operator()<reduce_scatter>();
    case all_gather: return with.template operator()<all_gather>();
    case broadcast: return with.template operator()<broadcast>();
    case reduce: return with.template operator()<reduce>();
    case all_to_all: return with.template operator()<all_to_all>();
    case gather: return with.template operator()<gather>();
    case scatter: return with.template operator()<scatter>();
    case barrier: return with.template operator()<barrier>();
    case send_receive: throw usage_error("send_receive has no algorithm and no schedule: choose a collective.");
  }
}

}  // namespace rondo::bench
