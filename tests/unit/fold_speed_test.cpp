#include <rondo/fold.hpp>
#include <rondo/ops.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <span>
#include <vector>

// Where the result goes must not decide how a fold is compiled: this program is built at -O3, which once turned folds
// in place into a loop over single elements, at a ninth of the speed.

namespace {

using namespace rondo;
using clock = std::chrono::steady_clock;

/// The shortest of many runs, whatever else the machine does.
template <class T, class Op>
clock::duration shortest(Op const& op, std::span<T> out, std::span<T const> a, std::span<T const> b) {
  auto least = clock::duration::max();
  auto const bytes = [](auto s) { return reinterpret_cast<std::byte const*>(s.data()); };
  for (int again = 0; again < 300; ++again) {
    auto const start = clock::now();
    detail::fold_two<T>(op, reinterpret_cast<std::byte*>(out.data()), bytes(a), bytes(b), out.size_bytes());
    least = std::min(least, clock::now() - start);
  }
  return least;
}

template <class T>
class fold_speed : public testing::Test {};
using elements = testing::Types<float, double, std::int32_t, std::int64_t, std::uint8_t>;
TYPED_TEST_SUITE(fold_speed, elements);

TYPED_TEST(fold_speed, is_the_same_in_place) {
  std::size_t const count = (std::size_t{64} << 10) / sizeof(TypeParam);
  std::vector<TypeParam> a(count), b(count), out(count);
  auto const compare = [&](auto const& op) {
    auto const apart = shortest<TypeParam>(op, out, a, b);
    EXPECT_LT(shortest<TypeParam>(op, a, a, b), 3 * apart);
    EXPECT_LT(shortest<TypeParam>(op, b, a, b), 3 * apart);
  };
  compare(sum);
  compare(rondo::max);
  compare([](TypeParam x, TypeParam y) noexcept { return static_cast<TypeParam>(x + y); });
}

}  // namespace
