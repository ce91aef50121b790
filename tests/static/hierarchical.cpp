#include <rondo/schedule/hierarchical.hpp>
#include <rondo/schedule/verify.hpp>

#include <array>
#include <span>

namespace {

using namespace rondo;

template <int... Sizes>
consteval bool proved() {
  std::array<int, sizeof...(Sizes)> const sizes{Sizes...};
  hierarchical::groups const groups(sizes);
  return verify_all_reduce(hierarchical::all_reduce{groups}) &&
         verify_all_reduce(hierarchical::all_reduce{groups, true});
}

static_assert(proved<1>());
static_assert(proved<5>());
static_assert(proved<1, 1>());
static_assert(proved<1, 3>());
static_assert(proved<3, 1>());
static_assert(proved<2, 2, 2>());
static_assert(proved<4, 4, 4, 4>());
static_assert(proved<1, 1, 1, 1, 1, 1, 1, 1>());
static_assert(proved<5, 3, 1, 2>());
static_assert(proved<8, 7>());

}  // namespace
