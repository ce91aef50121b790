#include "cases.hpp"
#include <rondo/cuda/low_latency.hpp>
#include <rondo/cuda/one_shot.hpp>
#include <rondo/cuda/two_shot.hpp>

#include <kernel_world.hpp>

namespace {

using namespace rondo;
using namespace kernel_cases;

// Fewer elements than ranks, than threads, than a pack; several windows; more than the words of a low-latency call.
std::vector<std::size_t> const counts{1, 5, 2, 64, 7, 131, 33, 3, 1000, 16, 127};

/// Every element has a factor of its own.
struct times_place {
  RONDO_HD float operator()(std::size_t i, float value) const noexcept { return value * static_cast<float>(i % 16); }
};

/// Neither commutative nor associative.
struct first_and_half {
  RONDO_HD float operator()(float a, float b) const noexcept { return a - b * 0.5F; }
};

template <int N, template <int, class, class, class, class, class> class Kernel, class Out, class T, class Op = sum_op,
          class Epilogue = device::keep, class Accumulator = device::accumulator_t<T, Op>>
void all_reduce(Op op = {}, Epilogue const& epilogue = {}) {
  world<N> ranks;
  all_reduce_case<N, T, Op, Epilogue, Out, Accumulator, Kernel>::run(ranks, counts, op, epilogue);
}

template <class Ranks>
struct all_reduce_kernels : testing::Test {};
using worlds =
    testing::Types<std::integral_constant<int, 2>, std::integral_constant<int, 3>, std::integral_constant<int, 8>>;
TYPED_TEST_SUITE(all_reduce_kernels, worlds);

TYPED_TEST(all_reduce_kernels, one_shot) {
  all_reduce<TypeParam::value, device::one_shot, float, float>();
  all_reduce<TypeParam::value, device::one_shot, bfloat16, bfloat16>(avg);
}

TYPED_TEST(all_reduce_kernels, two_shot) {
  all_reduce<TypeParam::value, device::two_shot, float, bfloat16>(sum, times_place{});
  all_reduce<TypeParam::value, device::two_shot, std::int32_t, std::int32_t>();
}

TYPED_TEST(all_reduce_kernels, low_latency) {
  all_reduce<TypeParam::value, device::low_latency, float16, float16>();
  all_reduce<TypeParam::value, device::low_latency, double, double>(rondo::max);
}

TYPED_TEST(all_reduce_kernels, ring) {
  all_reduce<TypeParam::value, device::ring, float, float>();
  all_reduce<TypeParam::value, device::ring, bfloat16, bfloat16, sum_op, device::keep, float>();
}

// The partial results of an ordered sum on the host are rounded one by one.
TEST(all_reduce_kernels, have_the_bits_of_an_ordered_sum_on_the_host) {
  all_reduce<3, device::two_shot, float16, float16, sum_op, device::keep, float16>();
  all_reduce<4, device::one_shot, float8_e4m3, float8_e4m3, sum_op, device::keep, float8_e4m3>();
}

// Every rank's factor is its own, and a user's operation may care who comes first.
TEST(all_reduce_kernels, prepare_each_contribution_and_keep_the_order_of_ranks) {
  all_reduce<3, device::one_shot, float8_e5m2, float8_e5m2>(premul_sum(1.5F));
  all_reduce<3, device::two_shot, float, float>(first_and_half{});
}

}  // namespace
