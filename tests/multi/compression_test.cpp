#include <rondo/bfloat16.hpp>
#include <rondo/float16.hpp>
#include <rondo/gradient/compression/gradient_compression.hpp>
#include <rondo/gradient/compression/narrowed.hpp>
#include <rondo/gradient/compression/one_bit.hpp>
#include <rondo/gradient/compression/powersgd.hpp>
#include <rondo/gradient/compression/quantized.hpp>
#include <rondo/gradient/compression/top_k.hpp>
#include <rondo/transports/in_process.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace rondo;
using comm = communicator<in_process>;
using numbers = std::vector<float>;

constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();

/// Numbers as gradients are: both signs, and many small ones and few large ones if there is a tail.
numbers gradient(std::uint64_t seed, std::size_t n, float size = 1, float tail = 1) {
  std::mt19937_64 random(seed * 7919 + n);
  std::normal_distribution<float> normal;
  numbers g(n);
  for (float& x : g) x = size * normal(random) * std::exp(tail * normal(random));
  return g;
}

double square(std::span<float const> v) {
  double sum = 0;
  for (float const x : v) sum += static_cast<double>(x) * static_cast<double>(x);
  return sum;
}

template <class Codec>
numbers through(Codec const& codec, numbers const& in) {
  constexpr std::byte guard{0xa5};
  std::vector<std::byte> bytes(codec.bytes(in.size()) + 8, guard);
  codec.encode(in, bytes.data());
  EXPECT_EQ(std::count(bytes.end() - 8, bytes.end(), guard), 8) << "wrote behind its bytes";
  numbers out(in.size() + 1, 77.0F);
  codec.decode(bytes.data(), std::span(out).first(in.size()));
  EXPECT_EQ(out.back(), 77.0F);
  out.pop_back();
  return out;
}

TEST(codec, narrow_floats_have_their_relative_error) {
  auto const in = gradient(1, 1001);
  auto const half = through(narrow_codec<float16>(), in), brain = through(narrow_codec<bfloat16>(), in);
  for (std::size_t i = 0; i < in.size(); ++i) {
    ASSERT_LE(std::abs(half[i] - in[i]), std::max(std::abs(in[i]) * 0x1p-11F, 3e-8F));
    ASSERT_LE(std::abs(brain[i] - in[i]), std::abs(in[i]) * 0x1p-8F);
  }
}

TEST(codec, blocks_have_an_error_relative_to_their_largest_number) {
  auto in = gradient(2, 64 * 5 + 3, 1e-3F);
  in[70] = 1e4F;  // spoils its block alone
  auto const whole = through(block_codec<std::int8_t, 64>(), in), fp8 = through(block_codec<float8_e4m3, 64>(), in);
  double error_of_others = 0;
  for (std::size_t first = 0; first < in.size(); first += 64) {
    std::size_t const last = std::min(in.size(), first + 64);
    float most = 0;
    for (std::size_t i = first; i < last; ++i) most = std::max(most, std::abs(in[i]));
    for (std::size_t i = first; i < last; ++i) {
      ASSERT_LE(std::abs(whole[i] - in[i]), most / 254 * 1.00001F);
      ASSERT_LE(std::abs(fp8[i] - in[i]), std::max(std::abs(in[i]) * 0x1p-4F, most * 0x1p-19F) * 1.00001F);
      if (first != 64) error_of_others = std::max(error_of_others, static_cast<double>(std::abs(whole[i] - in[i])));
    }
  }
  EXPECT_LT(error_of_others, 1e-3);
}

TEST(codec, blocks_of_zeros_and_of_the_smallest_numbers_stay_finite) {
  for (float const x : {0.0F, 1e-40F, std::numeric_limits<float>::max()}) {
    numbers const in(100, x);
    for (auto const& out : {through(block_codec<std::int8_t>(), in), through(block_codec<float8_e4m3>(), in)})
      for (float const y : out) {
        ASSERT_TRUE(std::isfinite(y)) << x;
        ASSERT_LE(std::abs(y - x), std::max(x / 100, 1e-38F));
      }
  }
}

TEST(codec, a_block_that_is_not_finite_becomes_nan_and_no_other) {
  for (float const bad : {infinity, -infinity, nan}) {
    numbers in(200, 1.0F);
    in[70] = bad;
    for (auto const& out : {through(block_codec<std::int8_t, 64>(), in), through(block_codec<float8_e4m3, 64>(), in),
                            through(sign_codec<64>(), in)})
      for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(std::isnan(out[i]), i / 64 == 1) << i;
  }
}

TEST(codec, signs_are_the_nearest_of_their_kind) {
  auto const in = gradient(3, 64 * 3);
  auto const out = through(sign_codec<64>(), in);
  for (std::size_t first = 0; first < in.size(); first += 64) {
    std::span const u(in.data() + first, 64), v(out.data() + first, 64);
    double sum = 0, error = 0;
    for (std::size_t i = 0; i < 64; ++i) {
      sum += static_cast<double>(std::abs(u[i]));
      error += std::pow(static_cast<double>(u[i] - v[i]), 2);
      EXPECT_EQ(std::signbit(u[i]), std::signbit(v[i]));
    }
    EXPECT_NEAR(error, square(u) - sum * sum / 64, 1e-4 * square(u));
  }
}

/// What a compressor does for one step: the sum, and how much of a rank's contribution is in it.
struct reduced {
  numbers total, sent;
  compression_cost cost;
};
template <class Compressor>
reduced reduce(comm& c, Compressor& compressor, numbers const& mine, bool feeds_back = false) {
  reduced r{numbers(mine.size()), numbers(mine.size()), {}};
  r.cost = compressor.reduce(c, {0, mine, r.total, r.sent, feeds_back});
  return r;
}

numbers exact_sum(int ranks, std::size_t n, std::uint64_t seed = 0) {
  std::vector<double> sum(n);
  for (int r = 0; r < ranks; ++r) {
    auto const g = gradient(seed + static_cast<std::uint64_t>(r), n);
    for (std::size_t i = 0; i < n; ++i) sum[i] += static_cast<double>(g[i]);
  }
  return numbers(sum.begin(), sum.end());
}

/// Two roundings: of every contribution, and of their sum.
TEST(two_phase, has_at_most_the_errors_of_its_codec_twice) {
  for (int const n : {1, 2, 3, 5})
    for (std::size_t const count : {1U, 2U, 7U, 5003U}) {
      auto const expected = exact_sum(n, count);
      std::vector<float> magnitudes(count, 0.0F);
      float most = 0;
      for (int r = 0; r < n; ++r) {
        auto const g = gradient(static_cast<std::uint64_t>(r), count);
        for (std::size_t i = 0; i < count; ++i) {
          magnitudes[i] += std::abs(g[i]);
          most = std::max(most, std::abs(g[i]));
        }
      }
      in_process::run(n, [&](comm& c) {
        auto const mine = gradient(static_cast<std::uint64_t>(c.rank()), count);
        narrowed<bfloat16> brain;
        quantized<std::int8_t> bytes;
        auto const a = reduce(c, brain, mine), b = reduce(c, bytes, mine);
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_LE(std::abs(a.total[i] - expected[i]), magnitudes[i] * 2 * 0x1p-8F) << i;
          ASSERT_LE(std::abs(a.sent[i] - mine[i]), std::abs(mine[i]) * 0x1p-8F);
          ASSERT_LE(std::abs(b.total[i] - expected[i]), most * static_cast<float>(2 * c.size()) / 254 * 1.001F);
        }
      });
    }
}

TEST(top_k, sends_the_largest_and_leaves_out_at_most_its_share) {
  constexpr std::size_t count = 1009;
  in_process::run(3, [](comm& c) {
    top_k tenth(0.1);
    auto const mine = gradient(static_cast<std::uint64_t>(c.rank()), count);
    auto const r = reduce(c, tenth, mine);
    auto magnitudes = mine;
    for (float& x : magnitudes) x = std::abs(x);
    std::sort(magnitudes.begin(), magnitudes.end(), std::greater<>());
    std::size_t const k = 101;
    EXPECT_EQ(static_cast<std::size_t>(std::count_if(r.sent.begin(), r.sent.end(), [](float x) { return x != 0; })), k);
    numbers left(count), total(count, 0.0F);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(r.sent[i], std::abs(mine[i]) >= magnitudes[k - 1] ? mine[i] : 0);
      left[i] = mine[i] - r.sent[i];
    }
    EXPECT_LE(square(left), 0.9 * square(mine));
    EXPECT_EQ(r.cost.bytes, 2 * k * 8);
    numbers expected(count);
    c.all_reduce(r.sent, expected, sum, {.ordered = true});
    for (std::size_t i = 0; i < count; ++i) EXPECT_FLOAT_EQ(r.total[i], expected[i]);
  });
}

TEST(top_k, takes_equals_in_their_order_and_nan_first) {
  in_process::run(2, [](comm& c) {
    top_k half(0.5);
    EXPECT_EQ(reduce(c, half, {1, -1, 1, 1}).sent, (numbers{1, -1, 0, 0}));
    EXPECT_EQ(reduce(c, half, {0, 0, 0, 0}).total, (numbers{0, 0, 0, 0}));
    auto const r = reduce(c, half, {1, nan, 5, infinity});
    EXPECT_TRUE(std::isnan(r.total[1]));
    EXPECT_EQ(r.total[3], infinity);
    EXPECT_EQ(r.sent[2], 0);
    EXPECT_THROW(top_k(0.0), invalid_argument);
    EXPECT_THROW(top_k(1.5), invalid_argument);
  });
}

/// A matrix of rank 2, a remainder of one number, and one more tensor that is too small to shrink.
TEST(powersgd, is_exact_for_matrices_of_its_rank_and_for_what_it_does_not_factor) {
  constexpr std::size_t rows = 30, columns = 20, count = rows * columns + 1 + 4;
  auto const contribution = [](int r) {
    auto const a = gradient(50 + static_cast<std::uint64_t>(r), rows), b = gradient(60, columns),
               d = gradient(70, rows), e = gradient(80 + static_cast<std::uint64_t>(r), columns);
    numbers m = gradient(90 + static_cast<std::uint64_t>(r), count);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) m[1 + i * columns + j] = r == 0 ? a[i] * b[j] : d[i] * e[j];
    return m;
  };
  in_process::run(2, [&](comm& c) {
    powersgd compressor({.rank = 2, .matrices = {{0, {{1, rows, columns}, {1 + rows * columns, 2, 2}}}}});
    auto const mine = contribution(c.rank());
    numbers expected(count);
    c.all_reduce(mine, expected, sum);
    for (int step = 0; step < 3; ++step) {
      auto const r = reduce(c, compressor, mine);
      numbers error(count);
      for (std::size_t i = 0; i < count; ++i) error[i] = r.total[i] - expected[i];
      EXPECT_LE(square(error), 1e-8 * square(expected)) << "step " << step;
      EXPECT_EQ(r.total[0], expected[0]);
      EXPECT_EQ(r.total[count - 1], expected[count - 1]);
      EXPECT_EQ(r.cost.bytes, 4 * (2 * (rows + columns) + 5));
    }
  });
}

TEST(powersgd, never_goes_farther_away_than_zero_and_nearer_in_every_step) {
  constexpr std::size_t count = 40 * 41 + 7;
  auto const expected = exact_sum(3, count);
  in_process::run(3, [&](comm& c) {
    powersgd compressor({.rank = 5});
    auto const mine = gradient(static_cast<std::uint64_t>(c.rank()), count);
    double last = square(expected);
    for (int step = 0; step < 6; ++step) {
      auto const r = reduce(c, compressor, mine);
      numbers error(count), left(count);
      for (std::size_t i = 0; i < count; ++i) error[i] = r.total[i] - expected[i], left[i] = mine[i] - r.sent[i];
      EXPECT_LE(square(error), last * 1.000001) << "step " << step;
      EXPECT_LE(square(left), square(mine) * 1.000001);
      last = square(error);
    }
    EXPECT_LT(last, 0.9 * square(expected));
  });
}

TEST(powersgd, survives_zeros_tiny_and_huge_numbers_and_says_nan) {
  in_process::run(2, [](comm& c) {
    powersgd compressor({.rank = 2});
    for (float const scale : {0.0F, 1e-30F, 1e15F, 1.0F}) {
      numbers const mine = gradient(5, 144, scale);
      auto const r = reduce(c, compressor, mine);
      double const error = square(r.total) - 4 * square(mine);
      EXPECT_TRUE(std::isfinite(error)) << scale;
      if (scale == 0) { EXPECT_EQ(square(r.total), 0); }
      if (scale == 1) { EXPECT_GT(square(r.total), 0.1 * 4 * square(mine)) << "zeros came before"; }
    }
    numbers bad = gradient(5, 144);
    bad[17] = nan;
    EXPECT_TRUE(std::isnan(reduce(c, compressor, bad).total[17]));
    EXPECT_TRUE(std::isfinite(reduce(c, compressor, gradient(5, 144)).total[17])) << "and forgets it";
    powersgd wrong({.matrices = {{0, {{0, 100, 100}}}}});
    EXPECT_THROW(reduce(c, wrong, gradient(5, 144)), invalid_argument);
  });
}

/// Calls f(name, a maker of a compressor) for each kind.
template <class F>
void each_compressor(F&& f) {
  f("float16", [] { return narrowed<float16>(); });
  f("bfloat16", [] { return narrowed<bfloat16>(); });
  f("int8", [] { return quantized<std::int8_t>(); });
  f("float8", [] { return quantized<float8_e4m3>(); });
  f("1-bit", [] { return one_bit(); });
  f("top-k", [] { return top_k(0.05); });
  f("powersgd", [] { return powersgd({.rank = 2}); });
}

/// Over many steps the results add up to the contributions: what is missing levels off, instead of growing with the
/// number of steps, of which there are four times as many. And all ranks always hold the same bits.
TEST(gradient_compression, loses_nothing_in_the_long_run_and_keeps_replicas_identical) {
  constexpr std::size_t count = 2000;
  constexpr int n = 3;
  each_compressor([](std::string const& name, auto make) {
    auto const missing_after = [&](int steps, bool feedback) {
      std::vector<double> wanted(count), got(count);
      std::mutex mutex;
      std::vector<numbers> results(static_cast<std::size_t>(steps));
      in_process::run(n, [&](comm& c) {
        gradient_compression compressed(make(), feedback);
        auto const steady = gradient(static_cast<std::uint64_t>(c.rank()), count, 1, 0);
        for (int step = 0; step < steps; ++step) {
          auto values = gradient(static_cast<std::uint64_t>(1000 + step * n + c.rank()), count, 1, 0);
          for (std::size_t i = 0; i < count; ++i) values[i] = 0.3F * values[i] + steady[i];
          {
            std::scoped_lock const lock(mutex);
            for (std::size_t i = 0; i < count; ++i) wanted[i] += static_cast<double>(values[i]);
          }
          compressed.all_reduce(c, 7, values);
          std::scoped_lock const lock(mutex);
          auto& first = results[static_cast<std::size_t>(step)];
          if (first.empty()) {
            first = values;
            for (std::size_t i = 0; i < count; ++i) got[i] += static_cast<double>(values[i]);
          }
          ASSERT_EQ(std::memcmp(first.data(), values.data(), count * sizeof(float)), 0) << name << ", step " << step;
        }
        EXPECT_EQ(compressed.statistics().calls, static_cast<std::uint64_t>(steps));
        EXPECT_GT(compressed.statistics().ratio(), 1.5) << name;
      });
      double missing = 0, whole = 0;
      for (std::size_t i = 0; i < count; ++i) {
        missing += std::pow(wanted[i] - got[i], 2);
        whole += std::pow(wanted[i] / steps, 2);
      }
      return std::sqrt(missing / whole);  // in steps
    };
    double const few = missing_after(40, true), many = missing_after(160, true);
    EXPECT_LT(many, 2.5 * few + 0.01) << name;
    if (name == "top-k" || name == "1-bit") { EXPECT_GT(missing_after(160, false), 2 * many) << name; }
  });
}

TEST(gradient_compression, has_a_buffer_of_one_size_for_each_bucket_and_exposes_its_error) {
  in_process::run(2, [](comm& c) {
    gradient_compression compressed(top_k(0.25));
    numbers small{4, 1, 1, 1}, large(8, 1.0F);
    EXPECT_TRUE(compressed.error(0).empty());
    compressed.all_reduce(c, 0, small);
    EXPECT_EQ(small, (numbers{8, 0, 0, 0}));
    EXPECT_EQ((numbers{compressed.error(0).begin(), compressed.error(0).end()}), (numbers{0, 1, 1, 1}));
    compressed.all_reduce(c, 1, large);
    EXPECT_THROW(compressed.all_reduce(c, 0, large), invalid_argument);
    numbers next(4, 0.0F);
    compressed.error(0)[3] = 5;
    compressed.all_reduce(c, 0, next);
    EXPECT_EQ(next, (numbers{0, 0, 0, 10}));
  });
}

TEST(gradient_compression, forgets_errors_that_are_not_finite) {
  each_compressor([](std::string const& name, auto make) {
    in_process::run(2, [&](comm& c) {
      gradient_compression compressed(make());
      numbers values(300, 1.0F);
      if (c.rank() == 0) values[10] = nan;
      compressed.all_reduce(c, 0, values);
      EXPECT_TRUE(std::isnan(values[10])) << name;
      for (int step = 0; step < 2; ++step) {
        values.assign(300, 1.0F);
        compressed.all_reduce(c, 0, values);
      }
      for (float const x : values) ASSERT_TRUE(std::isfinite(x)) << name;
    });
  });
}

}  // namespace
