#include <rondo/fold.hpp>

#include <string>

namespace {

using rondo::make_reduction;

template <class T, class Op>
void reduce(Op const& op) {
  (void)make_reduction<T>(op);
}

void allowed() {
  reduce<float>(rondo::sum);
  reduce<rondo::bfloat16>([](float a, float b) noexcept { return a < b ? b : a; });
}

}  // namespace

int main() {
  allowed();

#ifdef FAIL_bit_operation_on_floats
  // says: bit_and, bit_or and bit_xor need integers
  reduce<float>(rondo::bit_and);
#endif

#ifdef FAIL_bit_operation_on_narrow_floats
  // says: use logical_and, logical_or or logical_xor
  reduce<rondo::float16>(rondo::bit_xor);
#endif

#ifdef FAIL_operation_that_may_throw
  // says: declare the operation noexcept
  reduce<float>([](float a, float b) { return a + b; });
#endif

#ifdef FAIL_operation_of_one_operand
  // says: the operation does not take two elements
  reduce<float>([](float a) noexcept { return a; });
#endif

#ifdef FAIL_operation_that_returns_something_else
  // says: make its result convertible to the element type
  reduce<int>([](int, int) noexcept { return "text"; });
#endif

#ifdef FAIL_element_that_owns_memory
  // says: rondo moves elements as bytes
  reduce<std::string>([](std::string const& a, std::string const& b) { return a + b; });
#endif

#ifdef FAIL_fraction_of_an_integer
  // says: give premul_sum an integer factor, or reduce floats
  (void)rondo::premul_sum(0.5F).prepare(3);
#endif

#ifdef FAIL_product_of_user_types
  // says: the operation does not take two elements
  struct matrix {
    float a, b, c, d;
  };
  reduce<matrix>(rondo::prod);
#endif

#ifdef FAIL_narrow_float_from_float_unasked
  // says: conversion
  rondo::float16 const half = 1.5F;
  (void)half;
#endif
}
