#include "cases.hpp"
#include <rondo/cuda/low_latency.hpp>
#include <rondo/cuda/one_shot.hpp>
#include <rondo/cuda/two_shot.hpp>

#include <cstdint>
#include <kernel_world.hpp>
#include <type_traits>

/// Every kernel that folds, with each of TYPES, every operation of the type and several epilogues, for RANKS ranks.
namespace {

using namespace rondo;
using namespace kernel_cases;

std::vector<std::size_t> const lengths{1, 70, 9, 33};

/// Casts and has a say in every element.
struct odd_ones_negated {
  template <class A>
  RONDO_HD float operator()(std::size_t i, A const& value) const noexcept {
    return i % 2 == 0 ? static_cast<float>(value) : -static_cast<float>(value);
  }
};

template <class T, class Op, class Epilogue, class Out, class Accumulator>
void all_kernels(Op op, Epilogue const& epilogue) {
  world<RANKS> ranks;
  all_reduce_case<RANKS, T, Op, Epilogue, Out, Accumulator, device::one_shot>::run(ranks, lengths, op, epilogue);
  all_reduce_case<RANKS, T, Op, Epilogue, Out, Accumulator, device::two_shot>::run(ranks, lengths, op, epilogue);
  all_reduce_case<RANKS, T, Op, Epilogue, Out, Accumulator, device::low_latency>::run(ranks, lengths, op, epilogue);
  reduce_scatter_case<RANKS, T, Op, Epilogue, Out, Accumulator>::run(ranks, lengths, op, epilogue);
  if constexpr (sizeof(Out) <= sizeof(Accumulator) && is_commutative_v<Op>)
    all_reduce_case<RANKS, T, Op, Epilogue, Out, Accumulator, device::ring>::run(ranks, lengths, op, epilogue);
}

template <class T>
struct every_kernel : testing::Test {
  template <class Op>
  static void folds(Op op) {
    using A = device::accumulator_t<T, Op>;
    SCOPED_TRACE(op_name<Op>());
    all_kernels<T, Op, device::keep, T, A>(op, {});
    if constexpr (rondo::detail::is_small_float<T> && !op_traits<Op, T>::widens)
      all_kernels<T, Op, device::keep, T, T>(op, {});
  }
};
using types = testing::Types<TYPES>;
TYPED_TEST_SUITE(every_kernel, types);

TYPED_TEST(every_kernel, adds) { this->folds(sum); }
TYPED_TEST(every_kernel, multiplies) { this->folds(prod); }
TYPED_TEST(every_kernel, finds_extremes) {
  this->folds(rondo::min);
  this->folds(rondo::max);
}
TYPED_TEST(every_kernel, averages) { this->folds(avg); }
TYPED_TEST(every_kernel, adds_what_is_prepared) {
  if constexpr (std::is_integral_v<TypeParam>)
    this->folds(premul_sum(TypeParam{3}));
  else
    this->folds(premul_sum(0.75F));
}
TYPED_TEST(every_kernel, folds_bits) {
  if constexpr (std::is_integral_v<TypeParam>) {
    this->folds(rondo::bit_and);
    this->folds(rondo::bit_xor);
  }
}
TYPED_TEST(every_kernel, has_an_epilogue) {
  using T = TypeParam;
  using A = device::accumulator_t<T, sum_op>;
  all_kernels<T, sum_op, odd_ones_negated, float, A>(sum, {});
  if constexpr (!std::is_integral_v<T>) { all_kernels<T, sum_op, odd_ones_negated, bfloat16, A>(sum, {}); }
}

}  // namespace
