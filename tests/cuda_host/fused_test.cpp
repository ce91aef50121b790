#include "cases.hpp"
#include <rondo/cuda/fused/quantized.hpp>
#include <rondo/cuda/fused/rms_norm.hpp>
#include <rondo/cuda/fused/sync_and_step.hpp>
#include <rondo/cuda/fused/unscale.hpp>
#include <rondo/cuda/two_shot.hpp>
#include <rondo/fused/adamw.hpp>
#include <rondo/fused/sgd.hpp>

#include <kernel_world.hpp>

namespace {

using namespace rondo;
using namespace kernel_cases;

TEST(device_fused, unscale_tells_all_ranks_about_one_infinity) {
  constexpr int n = 3;
  for (bool const poisoned : {false, true}) {
    world<n> ranks;
    constexpr std::size_t count = 100;
    buffer<float> const factor(ranks, 1);
    factor[0] = 0.125F;
    buffer<std::uint32_t> const found(ranks, n);
    std::fill_n(found.data(), n, 0u);
    using kernel = device::two_shot<n, bfloat16, sum_op, device::unscale<n>>;
    std::vector<std::vector<kernel>> programs(n);
    for (int r = 0; r < n; ++r) {
      buffer<bfloat16> const in(ranks, count), out(ranks, count);
      for (std::size_t i = 0; i < count; ++i) in[i] = bfloat16(static_cast<float>(i % 16));
      if (poisoned && r == 1) in[77] = std::numeric_limits<bfloat16>::infinity();
      device::unscale<n> const epilogue{factor.data(), {&found[0], &found[1], &found[2]}};
      programs[static_cast<std::size_t>(r)].push_back({ranks.link(r), in.data(), out.data(), count, {}, epilogue});
    }
    ranks.run(programs);
    for (std::size_t r = 0; r < n; ++r) {
      EXPECT_EQ(found[r], poisoned ? 1u : 0u);
      for (std::size_t i = 0; i < count; ++i)
        if (i != 77) { EXPECT_EQ(programs[r][0].out[i], bfloat16(0.375F * static_cast<float>(i % 16))); }
    }
  }
}

TEST(device_fused, rms_norm_against_double) {
  constexpr int n = 4;
  world<n> ranks;
  constexpr std::size_t rows = 11, row = 40;
  std::minstd_rand random(1);
  auto const number = [&] { return bfloat16(static_cast<float>(random() % 2001) / 500.0F - 2.0F); };
  buffer<bfloat16> const weight(ranks, row);
  for (std::size_t i = 0; i < row; ++i) weight[i] = number();
  std::vector<std::vector<device::rms_norm<n, bfloat16>>> programs(n);
  std::vector<double> sums(rows * row, 0);
  std::vector<buffer<bfloat16>> streams;
  std::vector<bfloat16> before;
  for (std::size_t i = 0; i < rows * row; ++i) before.push_back(number());
  for (int r = 0; r < n; ++r) {
    buffer<bfloat16> const in(ranks, rows * row), out(ranks, rows * row);
    streams.emplace_back(ranks, rows * row);
    for (std::size_t i = 0; i < rows * row; ++i) {
      in[i] = number();
      sums[i] += static_cast<double>(static_cast<float>(in[i]));
      streams.back()[i] = before[i];
    }
    programs[static_cast<std::size_t>(r)].push_back(
        {ranks.link(r), in.data(), streams.back().data(), weight.data(), out.data(), rows, row, 1e-5F});
  }
  ranks.run(programs);
  for (std::size_t k = 0; k < rows; ++k) {
    double squares = 0;
    for (std::size_t i = 0; i < row; ++i) {
      double const stored = static_cast<float>(streams[0][k * row + i]);
      double const exact = sums[k * row + i] + static_cast<double>(static_cast<float>(before[k * row + i]));
      EXPECT_NEAR(stored, exact, 0.004 * std::abs(exact) + 1e-6);
      squares += stored * stored;
    }
    for (std::size_t i = 0; i < row; ++i) {
      double const expected = static_cast<float>(streams[0][k * row + i]) / std::sqrt(squares / row + 1e-5) *
                              static_cast<double>(static_cast<float>(weight[i]));
      for (std::size_t r = 0; r < n; ++r) {
        EXPECT_NEAR(static_cast<double>(static_cast<float>(programs[r][0].out[k * row + i])), expected,
                    0.005 * std::abs(expected) + 1e-6);
        EXPECT_TRUE(same_bits(programs[r][0].out[k * row + i], programs[0][0].out[k * row + i]));
        EXPECT_TRUE(same_bits(streams[r][k * row + i], streams[0][k * row + i]));
      }
    }
  }
  for (auto const& stream : streams) EXPECT_TRUE(stream.intact());
}

template <int N, class T, class Q, class Op>
void expect_quantized_results_near_exact_ones(Op, double steps) {
  world<N> ranks;
  std::vector<std::size_t> const counts{1, 33, 700, 64};
  std::minstd_rand random(N);
  std::vector<std::vector<device::quantized<N, T, Q, Op>>> programs(N);
  std::vector<std::vector<double>> sums, largest;
  std::vector<std::vector<buffer<T>>> outs;
  for (std::size_t const count : counts) {
    sums.emplace_back(count, 0.0);
    largest.emplace_back(count, 0.0);
    outs.emplace_back();
    for (int r = 0; r < N; ++r) {
      buffer<T> const in(ranks, count);
      outs.back().emplace_back(ranks, count);
      for (std::size_t i = 0; i < count; ++i) {
        in[i] = T(static_cast<float>(random() % 2001) / 300.0F - 3.0F);
        sums.back()[i] += static_cast<double>(static_cast<float>(in[i]));
        largest.back()[i] += std::abs(static_cast<double>(static_cast<float>(in[i])));
      }
      programs[static_cast<std::size_t>(r)].push_back({ranks.link(r), in.data(), outs.back().back().data(), count});
    }
  }
  ranks.run(programs);
  double const parts = std::is_same_v<Op, avg_op> ? N : 1;
  for (std::size_t c = 0; c < counts.size(); ++c)
    for (std::size_t i = 0; i < counts[c]; ++i) {
      // The largest of a block is at most 3.7 for each rank, and that of the total at most 3.7 N.
      double const bound = 3.7 * 2 * N / steps / parts + 0.01 * largest[c][i] / parts;
      EXPECT_NEAR(static_cast<double>(static_cast<float>(outs[c][0][i])), sums[c][i] / parts, bound) << i;
      for (std::size_t r = 1; r < N; ++r) EXPECT_TRUE(same_bits(outs[c][r][i], outs[c][0][i]));
    }
  for (auto const& call : outs)
    for (auto const& out : call) EXPECT_TRUE(out.intact());
}

TEST(device_fused, quantized_results_are_near_and_the_same_on_all_ranks) {
  expect_quantized_results_near_exact_ones<3, bfloat16, std::int8_t>(sum, 254);
  expect_quantized_results_near_exact_ones<2, float, float8_e4m3>(avg, 32);
}

TEST(device_fused, what_quantising_takes_away_is_not_lost) {
  constexpr int n = 2;
  constexpr std::size_t count = 96, steps = 60;
  world<n> ranks;
  std::vector<std::vector<device::quantized<n, float, std::int8_t, avg_op>>> programs(n);
  std::vector<double> means(count, 0), got(count, 0);
  std::vector<buffer<float>> outs;
  for (int r = 0; r < n; ++r) {
    buffer<float> const in(ranks, count), rest(ranks, count);
    for (std::size_t i = 0; i < count; ++i) {
      in[i] =
          i % 32 == 0 ? 100.0F : 0.05F * static_cast<float>(i % 7 + static_cast<std::size_t>(r));  // far below a step
      rest[i] = 0;
      means[i] += static_cast<double>(in[i]) / n;
    }
    for (std::size_t k = 0; k < steps; ++k) {
      outs.emplace_back(ranks, count);
      programs[static_cast<std::size_t>(r)].push_back(
          {ranks.link(r), in.data(), outs.back().data(), count, rest.data()});
    }
  }
  ranks.run(programs);
  for (std::size_t k = 0; k < steps; ++k)
    for (std::size_t i = 0; i < count; ++i) got[i] += static_cast<double>(outs[k][i]);
  // Two steps of size 100 / 127 may be under way at the end, however long it took.
  for (std::size_t i = 0; i < count; ++i) EXPECT_NEAR(got[i], means[i] * steps, 2.5 * 100 / 127) << i;
}

TEST(device_fused, a_block_that_is_not_finite_is_so_everywhere) {
  using block = device::quantized_block<std::int8_t, 4>;
  float const inf = std::numeric_limits<float>::infinity();
  float const bad[] = {1, -inf, 2, 3}, none[] = {0, -0.0F, 0, 1e-40F}, some[] = {127, -127, 63.6F, -0.4F};
  for (std::size_t j = 0; j < 4; ++j) {
    EXPECT_TRUE(std::isnan(block::of(bad)[j]));
    EXPECT_EQ(block::of(none)[j], 0.0F);
    EXPECT_EQ(block::of(some)[j], std::nearbyint(some[j]));
  }
}

/// A user's rule, with one moment, that knows nothing of exact_float.
struct momentum {
  static constexpr std::size_t moments = 1;
  struct update {
    RONDO_HD void operator()(float const& gradient, float& weight, float& velocity) const noexcept {
      velocity = 0.5F * velocity + gradient;  // exact, so it does not matter how it is rounded
      weight = weight - 0.25F * velocity;
    }
  };
  RONDO_HD update at(std::uint64_t) const noexcept { return {}; }
};

/// The same steps on one processor, the gradients of all ranks folded by the library's code for processors.
template <class G, class W, class Rule, std::size_t... K>
struct reference {
  std::vector<float> master;
  std::vector<std::vector<float>> moments{std::vector<std::vector<float>>(Rule::moments)};
  std::uint64_t steps = 0;
  double squares = 0;

  void step(Rule const& rule, std::vector<std::vector<G>> const& gradients, float scale, double max_norm) {
    std::size_t const count = master.size();
    for (auto& m : moments) m.resize(count);
    std::vector<float> mean(count);
    squares = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<G> x;
      for (auto const& g : gradients) x.push_back(g[i]);
      mean[i] = static_cast<float>(value_on_host<float>(std::vector<avg_op>(x.size()), x)) * scale;
      squares += static_cast<double>(mean[i]) * mean[i];
    }
    if (!std::isfinite(squares)) return;
    float const factor = max_norm > 0 ? clip_factor(squares, max_norm) : 1;
    auto const update = rule.at(++steps);
    for (std::size_t i = 0; i < count; ++i) {
      float const g = mean[i] * factor;
      if constexpr (Rule::moments == 0) update(g, master[i]);
      if constexpr (Rule::moments == 1) update(g, master[i], moments[0][i]);
      if constexpr (Rule::moments == 2) update(g, master[i], moments[0][i], moments[1][i]);
    }
  }
};

template <int N, class G, class W, class Rule>
void expect_steps_like_the_reference(Rule const& rule, std::size_t count, double max_norm) {
  world<N> ranks;
  using kernel = device::sync_and_step<N, G, W, Rule>;
  constexpr std::size_t steps = 6;
  std::minstd_rand random(N + 5);
  auto const number = [&] { return static_cast<float>(random() % 2001) / 500.0F - 2.0F; };

  buffer<device::step_settings<Rule>> const settings(ranks, 1);
  settings[0] = {.rule = rule, .max_norm = max_norm, .scale = 0.5F};
  reference<G, W, Rule> expected;
  for (std::size_t i = 0; i < count; ++i) expected.master.push_back(number());
  std::vector<buffer<W>> weights;
  std::vector<buffer<float>> masters;
  std::vector<buffer<device::step_outcome>> outcomes;
  std::vector<buffer<float>> moments;
  for (int r = 0; r < N; ++r) weights.emplace_back(ranks, count, 1);
  for (int r = 0; r < N; ++r) {
    shard const own = shard_of(count, r, N);
    masters.emplace_back(ranks, own.count);
    std::copy_n(expected.master.begin() + static_cast<std::ptrdiff_t>(own.first), own.count, masters.back().data());
    moments.emplace_back(ranks, own.count * Rule::moments);
    std::fill_n(moments.back().data(), moments.back().size(), 0.0F);
    outcomes.emplace_back(ranks, 1);
    outcomes.back()[0] = {};
  }
  std::vector<std::vector<kernel>> programs(N);
  std::vector<std::vector<std::vector<G>>> gradients(steps, std::vector<std::vector<G>>(N));
  for (std::size_t k = 0; k < steps; ++k) {
    std::vector<buffer<G>> places;
    for (std::size_t r = 0; r < N; ++r) {
      places.emplace_back(ranks, count);
      for (std::size_t i = 0; i < count; ++i) gradients[k][r].push_back(places.back()[i] = G(number()));
      if (k == 3 && r == N - 1)
        gradients[k][r][count / 2] = places.back()[count / 2] = std::numeric_limits<G>::quiet_NaN();
    }
    for (std::size_t r = 0; r < N; ++r) {
      buffer<float> const reduced(ranks, masters[r].size());
      kernel one{.ranks = ranks.link(static_cast<int>(r)),
                 .gradients = {},
                 .weights = {},
                 .count = count,
                 .reduced = reduced.data(),
                 .master = masters[r].data(),
                 .moments = moments[r].data(),
                 .settings = settings.data(),
                 .outcome = outcomes[r].data()};
      for (std::size_t q = 0; q < N; ++q) one.gradients[q] = places[q].data(), one.weights[q] = weights[q].data();
      programs[r].push_back(one);
    }
  }
  ranks.run(programs);
  for (auto const& one : gradients) expected.step(rule, one, 0.5F, max_norm);
  for (std::size_t r = 0; r < N; ++r) {
    EXPECT_EQ(outcomes[r][0].steps, steps - 1);
    EXPECT_EQ(outcomes[r][0].skipped, 1u);
    EXPECT_NEAR(outcomes[r][0].norm, std::sqrt(expected.squares), 1e-5 * std::sqrt(expected.squares));
    EXPECT_TRUE(same_bits(outcomes[r][0].norm, outcomes[0][0].norm));
    EXPECT_TRUE(weights[r].intact() && masters[r].intact() && moments[r].intact());
    for (std::size_t i = 0; i < count; ++i) {
      // The norm is summed in another order, which may change the last bit of the factor.
      float const tolerance = max_norm > 0 ? 1e-5F * (1 + std::abs(expected.master[i])) : 0.0F;
      float const got = static_cast<float>(weights[r][i]), want = static_cast<float>(W(expected.master[i]));
      ASSERT_NEAR(got, want, tolerance + (max_norm > 0 ? 0.01F * std::abs(want) : 0.0F))
          << "rank " << r << " element " << i;
      ASSERT_TRUE(same_bits(weights[r][i], weights[0][i]));
    }
    shard const own = shard_of(count, static_cast<int>(r), N);
    for (std::size_t i = 0; i < own.count; ++i)
      ASSERT_NEAR(masters[r][i], expected.master[own.first + i],
                  max_norm > 0 ? 1e-5F * (1 + std::abs(masters[r][i])) : 0.0F);
  }
}

TEST(device_fused, sync_and_step_is_reduction_norm_clipping_step_and_cast) {
  expect_steps_like_the_reference<2, bfloat16, bfloat16>(adamw{.learning_rate = 0.01}, 517, 1.5);
  expect_steps_like_the_reference<3, float16, float16>(momentum{}, 300, 0);
  expect_steps_like_the_reference<4, float, float>(adamw{}, 1000, 0);
  expect_steps_like_the_reference<8, bfloat16, float>(sgd{}, 65, 0);
}

}  // namespace
