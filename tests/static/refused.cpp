#include <rondo/schedule/ring.hpp>
#include <rondo/schedule/verify.hpp>

namespace {

using namespace rondo;

/// A ring of five in which rank 2 overwrites once where it should fold.
struct broken_ring : ring::all_reduce {
  constexpr step at(rank_t r, int i) const noexcept {
    step s = ring::all_reduce::at(r, i);
    if (r == 2 && i == 1) s.how = merge::overwrite;
    return s;
  }
};

static_assert(verify_all_reduce(ring::all_reduce{5}));
static_assert(!verify_all_reduce(broken_ring{{5}}));
static_assert(!verify_reduce_scatter(ring::all_gather{5}));
static_assert(!verify_broadcast(ring::broadcast{5, 1}, 2));
static_assert(verify_overlap(ring::broadcast{5, 1}, 4));

}  // namespace
