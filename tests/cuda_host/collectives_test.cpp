#include "cases.hpp"
#include <rondo/schedule/binomial.hpp>
#include <rondo/schedule/ordered_halving.hpp>
#include <rondo/schedule/recursive_doubling.hpp>
#include <rondo/schedule/recursive_halving.hpp>
#include <rondo/schedule/ring.hpp>
#include <rondo/schedule/tree.hpp>

#include <kernel_world.hpp>

namespace {

using namespace rondo;
using namespace kernel_cases;

std::vector<std::size_t> const sizes{1, 5, 64, 7, 131, 2, 500, 33};

struct halve {
  RONDO_HD float operator()(std::size_t, float value) const noexcept { return value * 0.5F; }
};

template <class Ranks>
struct device_kernels : testing::Test {};
using worlds =
    testing::Types<std::integral_constant<int, 2>, std::integral_constant<int, 3>, std::integral_constant<int, 8>>;
TYPED_TEST_SUITE(device_kernels, worlds);

TYPED_TEST(device_kernels, reduce_scatter) {
  world<TypeParam::value> ranks;
  reduce_scatter_case<TypeParam::value, bfloat16, avg_op, halve, float>::run(ranks, sizes, avg);
}

TYPED_TEST(device_kernels, all_gather_and_broadcast) {
  world<TypeParam::value> ranks;
  all_gather_case<TypeParam::value, float16>::run(ranks, sizes);
  broadcast_case<TypeParam::value, double>::run(ranks, sizes);
}

TYPED_TEST(device_kernels, run_schedules) {
  constexpr int n = TypeParam::value;
  world<n> ranks;
  scheduled_case<n, ring::all_reduce, float, avg_op>::run(ranks, {n}, sizes, avg);
  scheduled_case<n, recursive_doubling::all_reduce, bfloat16, sum_op>::run(ranks, {n}, sizes, sum);
}

TEST(device_kernels, run_schedules_of_every_shape) {
  world<5> five;
  scheduled_case<5, tree::all_reduce, std::int64_t, sum_op>::run(five, {5}, sizes, sum);
  scheduled_case<5, recursive_halving::all_reduce, float, max_op>::run(five, {5}, sizes, rondo::max);
  scheduled_case<5, binomial::broadcast, float, sum_op>::run(five, {5, 2}, sizes, sum);
  world<4> four;
  scheduled_case<4, ordered_halving::all_reduce, float8_e4m3, sum_op>::run(four, {4}, sizes, sum);
}

}  // namespace
