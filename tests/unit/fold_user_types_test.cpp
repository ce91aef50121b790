#include "fold_tools.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

namespace {

using namespace rondo;
using namespace fold_tools;

/// 12 bytes, and no default constructor.
struct triple {
  constexpr triple(float a, float b, float c) : x(a), y(b), z(c) {}
  float x, y, z;
};

TEST(fold_of_user_types, a_struct_of_12_bytes) {
  auto const add = [](triple const& a, triple const& b) noexcept { return triple(a.x + b.x, a.y * b.y, a.z - b.z); };
  static_assert(sizeof(triple) == 12 && reduce_op<decltype(add), triple>);
  reduction const fold = make_reduction<triple>(add);
  for (std::size_t const count : counts) {
    skewed<triple> a(count, 1), b(count, 3);
    for (std::size_t i = 0; i < count; ++i) {
      auto const f = static_cast<float>(i);
      a.set(i, {f, f, f}), b.set(i, {1, 2, 3});
    }
    fold(a.data(), a.data(), b.data(), count);
    for (std::size_t i = 0; i < count; ++i) {
      auto const f = static_cast<float>(i);
      triple const got = a.get(i);
      ASSERT_TRUE(got.x == f + 1 && got.y == f * 2 && got.z == f - 3) << i << " of " << count;
    }
  }
}

using matrix = std::array<std::int32_t, 4>;

constexpr auto product = [](matrix const& a, matrix const& b) noexcept {
  return matrix{a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                a[2] * b[1] + a[3] * b[3]};
};

TEST(fold_of_user_types, the_left_operand_stays_left_whichever_the_result_overwrites) {
  matrix const a{1, 2, 3, 4}, b{0, 1, 1, 1};
  ASSERT_NE(product(a, b), product(b, a));
  reduction const fold = make_reduction<matrix>(product);
  for (bool const into_first : {true, false}) {
    std::vector<matrix> left(9, a), right(9, b);
    auto* const l = reinterpret_cast<std::byte*>(left.data());
    auto* const r = reinterpret_cast<std::byte*>(right.data());
    fold(into_first ? l : r, l, r, 9);
    EXPECT_EQ(into_first ? left : right, std::vector<matrix>(9, product(a, b)));
  }
}

TEST(fold_of_user_types, an_operation_may_carry_state) {
  float const weight = 0.25F;
  auto const blend = [weight](float a, float b) noexcept { return a + weight * b; };
  folds_like<float>(blend);
  folds_like<bfloat16>(blend);
}

}  // namespace
