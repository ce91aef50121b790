#include "collective.hpp"
#include "pattern.hpp"
#include <rondo/bfloat16.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

namespace rondo::bench {
namespace {

template <class T>
std::vector<T> reduced(pattern const& p, int ranks, std::size_t count, std::size_t phase, auto op) {
  std::vector<T> sum(count), next(count);
  p.fill(sum.data(), count, 0, 0, phase);
  for (int r = 1; r < ranks; ++r) {
    p.fill(next.data(), count, r, 0, phase);
    for (std::size_t i = 0; i < count; ++i) sum[i] = op(sum[i], next[i]);
  }
  return sum;
}

constexpr std::size_t count = 10007;

TEST(bench_pattern, accepts_the_right_sum_in_any_order) {
  for (int const ranks : {1, 2, 3, 8}) {
    auto const p = make_pattern(datatype::float32, reduction::sum, ranks);
    auto const sum = reduced<float>(*p, ranks, count, 5, [](float a, float b) { return a + b; });
    EXPECT_EQ(p->count_wrong(sum.data(), count, origin::everybody, 0, 5), 0U) << ranks;
  }
}

TEST(bench_pattern, accepts_sums_that_are_rounded_at_every_hop) {
  auto const p = make_pattern(datatype::bfloat16, reduction::sum, 7);
  auto const sum = reduced<bfloat16>(
      *p, 7, count, 0, [](bfloat16 a, bfloat16 b) { return bfloat16(static_cast<float>(a) + static_cast<float>(b)); });
  EXPECT_EQ(p->count_wrong(sum.data(), count, origin::everybody, 0, 0), 0U);
}

TEST(bench_pattern, sees_a_contribution_that_is_missing) {
  for (auto const type : {datatype::float32, datatype::bfloat16, datatype::f8e5m2, datatype::int8}) {
    auto const with_four = make_pattern(type, reduction::sum, 4);
    std::vector<std::byte> only_first(count * size_of(type));
    with_four->fill(only_first.data(), count, 0, 0, 0);
    EXPECT_GT(with_four->count_wrong(only_first.data(), count, origin::everybody, 0, 0), count / 4) << name_of(type);
  }
}

TEST(bench_pattern, integers_must_be_exact) {
  auto const p = make_pattern(datatype::int32, reduction::prod, 3);
  auto product = reduced<std::int32_t>(*p, 3, count, 0, [](std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
  });
  EXPECT_EQ(p->count_wrong(product.data(), count, origin::everybody, 0, 0), 0U);
  product[17] ^= 1;
  EXPECT_EQ(p->count_wrong(product.data(), count, origin::everybody, 0, 0), 1U);
}

TEST(bench_pattern, sees_a_block_in_the_wrong_place) {
  auto const p = make_pattern(datatype::uint8, reduction::sum, 2);
  std::vector<std::uint8_t> data(count);
  p->fill(data.data(), count, 1, 64, 0);
  EXPECT_EQ(p->count_wrong(data.data(), count, 1, 64, 0), 0U);
  EXPECT_GT(p->count_wrong(data.data(), count, 1, 0, 0), count / 2);
  EXPECT_GT(p->count_wrong(data.data(), count, 0, 64, 0), count / 2);
  EXPECT_GT(p->count_wrong(data.data(), count, 1, 64, 1), count / 2);
}

TEST(bench_pattern, a_nan_is_wrong) {
  auto const p = make_pattern(datatype::float32, reduction::max, 2);
  auto most = reduced<float>(*p, 2, count, 0, [](float a, float b) { return std::max(a, b); });
  most[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(p->count_wrong(most.data(), count, origin::everybody, 0, 0), 1U);
}

TEST(bench_hash, depends_on_every_byte) {
  std::vector<std::byte> bytes(203);
  auto const before = hash_bytes(bytes);
  for (auto& b : bytes) {
    b ^= std::byte{1};
    EXPECT_NE(hash_bytes(bytes), before);
    b ^= std::byte{1};
  }
  EXPECT_EQ(hash_bytes(bytes), before);
  EXPECT_NE(hash_bytes(std::span(bytes).first(202)), before);
}

}  // namespace
}  // namespace rondo::bench
