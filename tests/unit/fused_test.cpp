#include <rondo/bfloat16.hpp>
#include <rondo/detail/step_kernel.hpp>
#include <rondo/float16.hpp>
#include <rondo/fused/adamw.hpp>
#include <rondo/fused/cast.hpp>
#include <rondo/fused/clip.hpp>
#include <rondo/fused/finite.hpp>
#include <rondo/fused/scale.hpp>
#include <rondo/fused/sgd.hpp>
#include <rondo/fused/sgd_momentum.hpp>
#include <rondo/fused/shard.hpp>
#include <rondo/fused/sum_of_squares.hpp>
#include <rondo/fused/then.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <span>
#include <vector>

// The parts of a fused step, each against what other code computes in double, and each with every set of instructions
// that this processor has.

namespace {

using namespace rondo;
using detail::instruction_set;

constexpr std::size_t counts[] = {1, 3, 7, 8, 9, 31, 64, 1000, 1027};

std::vector<instruction_set> sets() {
  std::vector<instruction_set> all{instruction_set::baseline};
  if (detail::best_instruction_set() != instruction_set::baseline) all.push_back(instruction_set::avx2);
  return all;
}

/// Numbers of an optimizer, with a guard behind them, and the same in double for the oracle.
template <std::size_t K>
struct numbers {
  std::vector<float> weight;
  std::array<std::vector<float>, K> moments;
  std::vector<double> exact_weight;
  std::array<std::vector<double>, K> exact_moments;

  static constexpr float guard = 12345;

  explicit numbers(std::size_t n) : weight(n + 8, guard), exact_weight(n) {
    std::mt19937 random(3);
    for (std::size_t i = 0; i < n; ++i) exact_weight[i] = weight[i] = std::normal_distribution<float>()(random);
    for (std::size_t k = 0; k < K; ++k) {
      moments[k].assign(n + 8, guard);
      std::fill_n(moments[k].begin(), n, 0.0F);
      exact_moments[k].assign(n, 0);
    }
  }

  bool guarded() const {
    auto const intact = [](std::vector<float> const& v) {
      return std::all_of(v.end() - 8, v.end(), [](float x) { return x == guard; });
    };
    return intact(weight) && std::all_of(moments.begin(), moments.end(), intact);
  }
};

/// Takes steps with kernel and oracle; weights and moments agree up to float rounding, the cast weights exactly.
template <class U, class O, class Oracle>
void steps_like(O const& rule, Oracle&& oracle) {
  constexpr std::size_t K = O::moments;
  for (instruction_set const set : sets())
    for (std::size_t const n : counts) {
      numbers<K> all(n);
      std::vector<std::byte> out(n * sizeof(U) + 2, std::byte{0x5a});
      std::mt19937 random(5);
      for (std::uint64_t t = 1; t <= 20; ++t) {
        std::vector<float> gradient(n);
        for (float& g : gradient) g = std::normal_distribution<float>()(random) * 3;
        detail::step_operands<K> at{gradient.data(), 0.5F, all.weight.data(), {}, out.data() + 1};
        for (std::size_t k = 0; k < K; ++k) at.moments[k] = all.moments[k].data();
        detail::step_with<U>(set, rule.at(t), at, n);
        for (std::size_t i = 0; i < n; ++i) {
          std::array<double*, K> m;
          for (std::size_t k = 0; k < K; ++k) m[k] = &all.exact_moments[k][i];
          oracle(t, 0.5 * static_cast<double>(gradient[i]), all.exact_weight[i], m);
          ASSERT_NEAR(static_cast<double>(all.weight[i]), all.exact_weight[i],
                      2e-6 * (1 + std::abs(all.exact_weight[i])))
              << "element " << i << " of " << n << " in step " << t;
          for (std::size_t k = 0; k < K; ++k)
            ASSERT_NEAR(static_cast<double>(all.moments[k][i]), *m[k], 2e-6 * (1 + std::abs(*m[k]))) << "moment " << k;
          U const cast_by_hand(all.weight[i]);
          ASSERT_EQ(std::memcmp(out.data() + 1 + i * sizeof(U), &cast_by_hand, sizeof(U)), 0);
        }
      }
      EXPECT_TRUE(all.guarded() && out.front() == std::byte{0x5a} && out.back() == std::byte{0x5a}) << n;
    }
}

TEST(adamw, follows_its_formula) {
  adamw const rule{.learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1};
  auto const oracle = [&](std::uint64_t t, double g, double& w, std::array<double*, 2> m) {
    double const steps = static_cast<double>(t);
    w -= rule.learning_rate * rule.weight_decay * w;
    *m[0] += (1 - rule.beta1) * (g - *m[0]);
    *m[1] += (1 - rule.beta2) * (g * g - *m[1]);
    double const mean = *m[0] / (1 - std::pow(rule.beta1, steps)), square = *m[1] / (1 - std::pow(rule.beta2, steps));
    w -= rule.learning_rate * mean / (std::sqrt(square) + rule.epsilon);
  };
  steps_like<bfloat16>(rule, oracle);
  steps_like<float>(rule, oracle);
}

/// The first step moves a weight by the learning rate, whatever the gradient: bias correction, and epsilon outside.
TEST(adamw, moves_by_its_learning_rate_first) {
  float weight = 1, mean = 0, square = 0;
  adamw{.learning_rate = 0.25, .epsilon = 0, .weight_decay = 0}.at(1)(1e-3F, weight, mean, square);
  EXPECT_NEAR(weight, 0.75F, 1e-6F);
  weight = 1, mean = square = 0;
  adamw{.learning_rate = 0.25, .epsilon = 1e-3, .weight_decay = 0}.at(1)(1e-3F, weight, mean, square);
  EXPECT_NEAR(weight, 0.875F, 1e-6F);
}

TEST(sgd, follows_its_formula) {
  sgd const rule{.learning_rate = 0.1, .weight_decay = 0.01};
  steps_like<float16>(rule, [&](std::uint64_t, double g, double& w, std::array<double*, 0>) {
    w -= rule.learning_rate * (g + rule.weight_decay * w);
  });
}

TEST(sgd_momentum, follows_its_formula) {
  for (bool const nesterov : {false, true}) {
    sgd_momentum const rule{.learning_rate = 0.02, .momentum = 0.7, .weight_decay = 0.01, .nesterov = nesterov};
    steps_like<bfloat16>(rule, [&](std::uint64_t t, double g, double& w, std::array<double*, 1> m) {
      double const slope = g + rule.weight_decay * w;
      *m[0] = t == 1 ? slope : rule.momentum * *m[0] + slope;
      w -= rule.learning_rate * (nesterov ? slope + rule.momentum * *m[0] : *m[0]);
    });
  }
}

/// A rule of a user's, without lanes.
struct lion_like {
  static constexpr std::size_t moments = 1;
  auto at(std::uint64_t) const noexcept {
    return [](float g, float& w, float& m) noexcept {
      w -= 0.01F * (0.9F * m + 0.1F * g > 0 ? 1.0F : -1.0F);
      m = 0.99F * m + 0.01F * g;
    };
  }
};
static_assert(optimizer<lion_like> && optimizer<adamw> && optimizer<sgd> && optimizer<sgd_momentum>);
static_assert(!optimizer<int>);

TEST(optimizer, may_be_a_users_for_single_floats) {
  steps_like<bfloat16>(lion_like{}, [](std::uint64_t, double g, double& w, std::array<double*, 1> m) {
    w -= 0.01 * (0.9 * *m[0] + 0.1 * g > 0 ? 1 : -1);
    *m[0] = 0.99 * *m[0] + 0.01 * g;
  });
}

/// Every set gives the same bits, also those of the last elements, which do not fill a register.
TEST(adamw, has_the_same_bits_with_every_set) {
  std::size_t const n = 1027;
  std::vector<std::vector<float>> results;
  for (instruction_set const set : sets()) {
    numbers<2> all(n);
    std::vector<float> gradient(n), out(n);
    std::mt19937 random(9);
    for (std::uint64_t t = 1; t < 10; ++t) {
      for (float& g : gradient) g = std::normal_distribution<float>()(random);
      detail::step_with<float>(set, adamw{}.at(t),
                               detail::step_operands<2>{gradient.data(),
                                                        1.5F,
                                                        all.weight.data(),
                                                        {all.moments[0].data(), all.moments[1].data()},
                                                        reinterpret_cast<std::byte*>(out.data())},
                               n);
    }
    results.push_back(out);
  }
  for (auto const& r : results) EXPECT_EQ(std::memcmp(r.data(), results[0].data(), n * sizeof(float)), 0);
}

TEST(sum_of_squares, is_exact_for_integers_and_independent_of_pieces) {
  std::mt19937 random(11);
  std::vector<float> rough(5000), whole(5000);
  double expected = 0;
  for (std::size_t i = 0; i < rough.size(); ++i) {
    rough[i] = std::normal_distribution<float>()(random);
    whole[i] = static_cast<float>(random() % 2001) - 1000;
    expected += static_cast<double>(whole[i]) * static_cast<double>(whole[i]);
  }
  sum_of_squares exact, at_once, in_pieces;
  exact.add(whole);
  EXPECT_EQ(exact.total(), expected);
  at_once.add(rough);
  for (std::size_t i = 0, n = 1; i < rough.size(); i += n, n = n * 7 % 101)
    in_pieces.add(std::span(rough).subspan(i, std::min(n, rough.size() - i)));
  EXPECT_EQ(at_once.total(), in_pieces.total());
  double reference = 0;
  for (float const x : rough) reference += static_cast<double>(x) * static_cast<double>(x);
  EXPECT_NEAR(at_once.total(), reference, 1e-9);
}

TEST(sum_of_squares, is_finite_if_and_only_if_all_elements_are) {
  std::vector<float> x(77, std::numeric_limits<float>::max());
  for (float const odd : {1.0F, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()})
    for (std::size_t const place : {0U, 15U, 16U, 76U}) {
      auto copy = x;
      copy[place] = odd;
      sum_of_squares sum;
      sum.add(copy);
      EXPECT_EQ(is_finite(sum.total()), odd == 1.0F);
    }
}

TEST(is_finite, asks_the_bits) {
  for (std::uint32_t exponent = 0; exponent < 256; ++exponent)
    for (std::uint32_t const rest : {0U, 1U, 0x7fffffU, 0x80000000U, 0x80000001U}) {
      float const x = std::bit_cast<float>(exponent << 23 | rest);
      EXPECT_EQ(is_finite(x), std::isfinite(x));
      EXPECT_EQ(is_finite(static_cast<double>(x)), std::isfinite(x));
    }
  std::vector<float16> narrow(40, std::numeric_limits<float16>::max());
  EXPECT_FALSE(found_non_finite(std::span<float16 const>(narrow)));
  narrow[33] = std::numeric_limits<float16>::infinity();
  EXPECT_TRUE(found_non_finite(std::span<float16 const>(narrow)));
}

/// The values of torch.nn.utils.clip_grad_norm_: gradients {3, 4} have norm 5.
TEST(clip_factor, is_that_of_torch) {
  EXPECT_FLOAT_EQ(clip_factor(25, 1), 0.19999996F);
  EXPECT_EQ(clip_factor(25, 5), static_cast<float>(5 / (5 + 1e-6)));
  EXPECT_EQ(clip_factor(25, 5.1), 1.0F);
  EXPECT_EQ(clip_factor(0, 1), 1.0F);
  EXPECT_EQ(clip_factor(25, 0), 0.0F);
}

TEST(epilogues, scale_cast_and_follow_each_other) {
  EXPECT_EQ(scale{0.5F}(7, 3.0F), 1.5F);
  EXPECT_EQ(static_cast<float>(cast<bfloat16>(7, 1.00390625F)), 1.0F);
  EXPECT_EQ(static_cast<float>(then(scale{2.0F}, cast<float16>)(7, 1.5F)), 3.0F);
  static_assert(detail::is_independent<epilogue_chain<scale<float>, cast_to<float16>>>);
  auto const lambda = [](std::size_t, float x) noexcept { return x; };
  static_assert(!detail::is_independent<decltype(then(cast<float16>, lambda))>);
}

TEST(shards, are_even_cover_all_and_begin_on_cache_lines) {
  for (int const ranks : {1, 2, 3, 5, 7, 40})
    for (std::size_t const count : {0U, 1U, 63U, 64U, 65U, 1000U, 100'003U}) {
      std::size_t next = 0, most = 0, least = count;
      auto const all = shard_counts(count, ranks);
      for (rank_t r = 0; r < ranks; ++r) {
        shard const s = shard_of(count, r, ranks);
        EXPECT_EQ(s.first, next);
        EXPECT_TRUE(s.first % 64 == 0 || s.count == 0);
        EXPECT_EQ(all[static_cast<std::size_t>(r)], s.count);
        next += s.count, most = std::max(most, s.count), least = std::min(least, s.count);
      }
      EXPECT_EQ(next, count);
      EXPECT_LE(most - least, 128U);
    }
}

}  // namespace
