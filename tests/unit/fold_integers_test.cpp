#include "fold_tools.hpp"

#include <cstdint>
#include <gtest/gtest.h>

namespace {

using namespace rondo;
using namespace fold_tools;

template <class T>
class fold_of_integers : public ::testing::Test {};

using integers = ::testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                                  std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(fold_of_integers, integers);

TYPED_TEST(fold_of_integers, sum) { folds_like<TypeParam>(sum); }
TYPED_TEST(fold_of_integers, prod) { folds_like<TypeParam>(prod); }
TYPED_TEST(fold_of_integers, min) { folds_like<TypeParam>(rondo::min); }
TYPED_TEST(fold_of_integers, max) { folds_like<TypeParam>(rondo::max); }
TYPED_TEST(fold_of_integers, bit_and) { folds_like<TypeParam>(bit_and); }
TYPED_TEST(fold_of_integers, bit_xor) { folds_like<TypeParam>(bit_xor); }
TYPED_TEST(fold_of_integers, logical_or) { folds_like<TypeParam>(logical_or); }

}  // namespace
