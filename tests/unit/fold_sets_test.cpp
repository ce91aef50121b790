#include "fold_tools.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

namespace {

using namespace rondo;
using namespace fold_tools;
using detail::instruction_set;

/// What this processor has.
std::vector<instruction_set> sets() {
  std::vector<instruction_set> all;
  for (auto const set :
       {instruction_set::baseline, instruction_set::avx2, instruction_set::avx512, instruction_set::vbmi})
    if (set <= detail::best_instruction_set()) all.push_back(set);
  return all;
}

/// Any pattern of bits: NaN, infinity and subnormal, too.
template <class T>
T any_value(std::mt19937_64& random) {
  std::array<std::uint64_t, 2> const bits{random(), random()};
  return detail::load<T>(reinterpret_cast<std::byte const*>(bits.data()));
}

template <class T, class Op>
T one_by_one(Op const& op, std::span<T const> x) {
  if (x.size() == 1) return x[0];
  std::size_t const half = std::bit_ceil(x.size()) / 2;
  return detail::combine(op, one_by_one(op, x.first(half)), one_by_one(op, x.subspan(half)));
}

/// Every instruction set gives the bits of the operation called one by one in the canonical tree, for any number of
/// sources, to all outs, of which one is a source.
template <class T, class Op>
void same_bits_on_every_set(Op const& op) {
  std::mt19937_64 random(11);
  for (std::size_t const k : {2U, 3U, 4U, 5U, 7U, 8U, 9U, 17U})
    for (std::size_t const count : {1U, 31U, 65U, 1027U}) {
      std::vector<std::vector<T>> values(count, std::vector<T>());
      std::vector<T> expected;
      for (auto& x : values) {
        for (std::size_t i = 0; i < k; ++i) x.push_back(any_value<T>(random));
        expected.push_back(one_by_one<T>(op, std::span<T const>(x.begin(), x.end())));
      }
      for (instruction_set const set : sets()) {
        std::vector<skewed<T>> sources;
        std::vector<std::byte const*> from;
        for (std::size_t s = 0; s < k; ++s) {
          sources.emplace_back(count, s % 5);
          for (std::size_t i = 0; i < count; ++i) sources[s].set(i, values[i][s]);
        }
        for (auto& source : sources) from.push_back(source.data());
        skewed<T> elsewhere(count, 3);
        std::byte* const outs[] = {sources[k / 2].data(), elsewhere.data(), sources[0].data()};
        detail::fold_tree<T, Op>(set, op)(outs, from, count);
        for (skewed<T>* const out : {&sources[k / 2], &elsewhere, &sources[0]}) {
          for (std::size_t i = 0; i < count; ++i) {
            T const got = out->get(i);
            ASSERT_EQ(std::memcmp(&got, &expected[i], sizeof(T)), 0)
                << op_name<Op>() << " of " << type_name<T>() << " from " << k << " sources, " << i << " of " << count
                << ", set " << static_cast<int>(set);
          }
          ASSERT_TRUE(out->guards_intact());
        }
      }
    }
}

template <class T>
class fold_on_every_set : public ::testing::Test {};

using numbers = ::testing::Types<float, double, float16, bfloat16, float8_e4m3, float8_e5m2, std::int8_t, std::uint16_t,
                                 std::int32_t, std::uint64_t>;
TYPED_TEST_SUITE(fold_on_every_set, numbers);

TYPED_TEST(fold_on_every_set, sum) { same_bits_on_every_set<TypeParam>(sum); }
TYPED_TEST(fold_on_every_set, prod) { same_bits_on_every_set<TypeParam>(prod); }
TYPED_TEST(fold_on_every_set, min) { same_bits_on_every_set<TypeParam>(rondo::min); }
TYPED_TEST(fold_on_every_set, max) { same_bits_on_every_set<TypeParam>(rondo::max); }
TYPED_TEST(fold_on_every_set, logical_xor) { same_bits_on_every_set<TypeParam>(logical_xor); }

/// What a compiler would contract where it may: neither the bits nor the order of operands depends on the set.
TYPED_TEST(fold_on_every_set, a_lambda_that_multiplies_and_adds) {
  using A = accumulator_t<TypeParam>;
  if constexpr (std::is_floating_point_v<A>) {
    A const weight = static_cast<A>(0.3);
    same_bits_on_every_set<TypeParam>([weight](A a, A b) noexcept { return a * weight + b; });
  } else {
    same_bits_on_every_set<TypeParam>([](A a, A b) noexcept { return static_cast<A>(a ^ static_cast<A>(b >> 1)); });
  }
}

template <class T>
class pairs_on_every_set : public ::testing::Test {};

using bytes = ::testing::Types<float8_e4m3, float8_e5m2>;
TYPED_TEST_SUITE(pairs_on_every_set, bytes);

/// All there are.
TYPED_TEST(pairs_on_every_set, have_the_sum_that_float_gives) {
  using T = TypeParam;
  constexpr std::size_t count = 1 << 16;
  std::vector<std::byte> a(count), b(count), out(count);
  for (std::size_t i = 0; i < count; ++i) a[i] = static_cast<std::byte>(i), b[i] = static_cast<std::byte>(i >> 8);
  std::byte const* const sources[] = {a.data(), b.data()};
  for (instruction_set const set : sets()) {
    ASSERT_EQ((detail::fold_lanes_with<T, 2>(set, sum, out.data(), sources, count)), count);
    for (std::size_t i = 0; i < count; ++i) {
      T const expected = detail::combine(sum, detail::load<T>(&a[i]), detail::load<T>(&b[i]));
      ASSERT_EQ(std::memcmp(&out[i], &expected, 1), 0)
          << std::to_integer<int>(a[i]) << " + " << std::to_integer<int>(b[i]) << ", set " << static_cast<int>(set);
    }
  }
}

template <class T>
class conversion_on_every_set : public ::testing::Test {};

using narrow_floats = ::testing::Types<float, float16, bfloat16, float8_e4m3, float8_e5m2>;
TYPED_TEST_SUITE(conversion_on_every_set, narrow_floats);

/// Every pattern of T to float, and many of float to T, with something computed on the way. Only what a signalling NaN
/// becomes as a float may differ.
TYPED_TEST(conversion_on_every_set, gives_the_bits_of_conversion_one_by_one) {
  using T = TypeParam;
  std::mt19937_64 random(5);
  constexpr std::size_t count = 65537;
  auto const half = [](float x) noexcept { return x / 2; };
  skewed<float> wide(count, 1), widened(count, 3);
  skewed<T> narrow(count, 1), narrowed(count, 1);
  for (std::size_t i = 0; i < count; ++i) {
    wide.set(i, any_value<float>(random));
    narrow.set(i, any_value<T>(random));
  }
  for (instruction_set const set : sets()) {
    detail::map_in_float<T, float>(set, half, narrowed.data(), wide.data(), count);
    detail::map_in_float<float, T>(set, half, widened.data(), narrow.data(), count);
    for (std::size_t i = 0; i < count; ++i) {
      T const expected = static_cast<T>(half(wide.get(i))), got = narrowed.get(i);
      ASSERT_EQ(std::memcmp(&got, &expected, sizeof(T)), 0) << i << ", set " << static_cast<int>(set);
      float const exact = half(static_cast<float>(narrow.get(i))), float_got = widened.get(i);
      ASSERT_TRUE(std::memcmp(&float_got, &exact, sizeof exact) == 0 || (exact != exact && float_got != float_got));
    }
    ASSERT_TRUE(narrowed.guards_intact() && widened.guards_intact());
  }
}

TEST(fold_many, takes_a_user_type_and_one_source) {
  using matrix = std::array<std::int32_t, 3>;
  auto const mix = [](matrix const& a, matrix const& b) noexcept {
    return matrix{a[0] * 3 + b[1], a[1] - b[2] * 5, a[2] ^ b[0]};
  };
  same_bits_on_every_set<matrix>([](matrix const& a, matrix const& b) noexcept {
    auto const x = [](std::int32_t v) { return static_cast<std::uint32_t>(v); };
    auto const y = [](std::uint32_t v) { return static_cast<std::int32_t>(v); };
    return matrix{y(x(a[0]) * 3 + x(b[1])), y(x(a[1]) - x(b[2])), a[2] ^ b[0]};
  });
  matrix const in[] = {{1, 2, 3}, {4, 5, 6}};
  matrix out[2] = {};
  auto const* const from = reinterpret_cast<std::byte const*>(in);
  auto* const to = reinterpret_cast<std::byte*>(out);
  make_reduction<matrix>(mix).fold_many(&mix, std::span(&to, 1), std::span(&from, 1), 2);
  EXPECT_EQ(std::memcmp(in, out, sizeof in), 0);
}

}  // namespace
