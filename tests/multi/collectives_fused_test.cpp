#include "collectives.hpp"
#include <rondo/fused/adamw.hpp>
#include <rondo/fused/cast.hpp>
#include <rondo/fused/scale.hpp>
#include <rondo/fused/sgd.hpp>
#include <rondo/fused/sgd_momentum.hpp>
#include <rondo/fused/sync_and_step.hpp>
#include <rondo/fused/then.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <thread>

// What owners do with the elements that they own, in the same pass in which these are reduced or handed out: the same
// bits whatever carries them, and as if every pass had been made on its own.

namespace {

using namespace collectives_test;

struct fused_setting {
  medium where;
  int ranks;
  bool registered;

  friend std::ostream& operator<<(std::ostream& out, fused_setting const& s) {
    return out << name_of(s.where) << " " << s.ranks << (s.registered ? " registered" : "");
  }
};

std::vector<fused_setting> settings() {
  std::vector<fused_setting> all;
  for (medium const where : media)
    for (int n = 1; n <= 5; ++n)
      for (bool const registered : {false, true})
        if (where != medium::tcp || !registered) all.push_back({where, n, registered});
  return all;
}

class fused : public testing::TestWithParam<fused_setting> {};
INSTANTIATE_TEST_SUITE_P(over, fused, testing::ValuesIn(settings()));

/// A buffer as the setting wants it.
template <class T>
struct some_buffer {
  registered_buffer<T> shared;
  std::vector<T> plain;

  some_buffer(comm& c, fused_setting const& s, std::size_t n)
      : shared(c.allocate<T>(s.registered ? n : 0)), plain(s.registered ? 0 : n) {}
  std::span<T> all() { return plain.empty() ? std::span<T>(shared) : std::span<T>(plain); }
};

/// Values whose sum depends on the order of additions and on where it is rounded.
template <class T>
T rough(rank_t r, std::size_t i, std::size_t salt = 0) {
  std::uint64_t const x = mixed(i * 64 + static_cast<std::uint64_t>(r) + salt * 0x10000000000U);
  if constexpr (std::is_integral_v<T>) return static_cast<T>(x);
  return static_cast<T>(std::ldexp(static_cast<float>(x % 4095) - 2047.0F, static_cast<int>(x >> 61) - 14));
}

/// The canonical sum of contribution(first), contribution(first + 1), … in A.
template <class A, class F>
A canonical(F const& contribution, rank_t first, int n) {
  if (n == 1) return static_cast<A>(contribution(first));
  int const half = static_cast<int>(std::bit_ceil(static_cast<unsigned>(n)) / 2);
  return sum(canonical<A>(contribution, first, half), canonical<A>(contribution, first + half, n - half));
}

/// Blocks that are uneven, some of them empty.
std::vector<std::size_t> uneven(int n, std::size_t around) {
  std::vector<std::size_t> counts;
  for (std::size_t r = 0; r < static_cast<std::size_t>(n); ++r) counts.push_back(r % 3 == 1 ? 0 : around + r * 7);
  return counts;
}

constexpr std::size_t lengths[] = {0, 1, 5, 1023, 1024, 40'001};

template <class T, class U, class Op, class Result>
void reduce_scatters(fused_setting const& s, Op const& op, Result const& result) {
  on_ranks(s.where, s.ranks, [&](comm& c) {
    auto const me = static_cast<std::size_t>(c.rank());
    for (std::size_t const around : lengths) {
      auto const counts = uneven(s.ranks, around);
      std::size_t before = 0, total = 0;
      for (std::size_t r = 0; r < counts.size(); ++r) before += r < me ? counts[r] : 0, total += counts[r];
      some_buffer<T> in(c, s, total);
      guarded<U> out(counts[me], sizeof(U) == 1 ? 0 : 2);
      std::vector<int> seen(counts[me]);
      for (std::size_t i = 0; i < total; ++i) in.all()[i] = rough<T>(c.rank(), i);
      std::size_t next = 0;
      bool in_order = true;
      c.reduce_scatter_v(in.all(), out.all(), counts, op,
                         [&](std::size_t i, accumulator_t<T> value) noexcept {
                           in_order = in_order && i == next++;
                           return result(value);
                         },
                         {.ordered = true});
      EXPECT_TRUE(in_order && next == counts[me]) << next << " of " << counts[me];
      EXPECT_EQ(out.wrong([&](std::size_t i) {
        auto const of = [&](rank_t r) { return rough<T>(r, before + i); };
        auto const folded = canonical<accumulator_t<T>>(of, 0, s.ranks);
        if constexpr (std::is_same_v<Op, avg_op>) return result(folded / static_cast<accumulator_t<T>>(s.ranks));
        return result(folded);
      }),
                "")
          << "around " << around << " on rank " << c.rank();
      std::size_t changed = 0;
      for (std::size_t i = 0; i < total; ++i) {
        T const was = rough<T>(c.rank(), i), is = in.all()[i];
        changed += std::memcmp(&was, &is, sizeof(T)) != 0;
      }
      EXPECT_EQ(changed, 0U) << "elements of the input";
    }
  });
}

TEST_P(fused, reduce_scatter_hands_each_sum_to_its_owner) {
  reduce_scatters<bfloat16, float>(GetParam(), avg, [](float x) noexcept { return x * 3; });
  reduce_scatters<float, bfloat16>(GetParam(), sum, [](float x) noexcept { return bfloat16(x); });
  reduce_scatters<std::int32_t, std::uint8_t>(GetParam(), sum,
                                              [](std::int32_t x) noexcept { return static_cast<std::uint8_t>(x); });
}

/// By block, by several elements at a time, and asynchronously.
TEST_P(fused, epilogues_of_all_kinds_give_the_same) {
  on_ranks(GetParam().where, GetParam().ranks, [&](comm& c) {
    std::size_t const n = 2345;
    some_buffer<float16> in(c, GetParam(), n * static_cast<std::size_t>(c.size()));
    for (std::size_t i = 0; i < in.all().size(); ++i) in.all()[i] = rough<float16>(c.rank(), i);
    std::array<std::vector<bfloat16>, 4> outs;
    outs.fill(std::vector<bfloat16>(n));
    call_options const ordered{.ordered = true};
    c.reduce_scatter(
        in.all(), outs[0], sum, [](std::size_t, float x) noexcept { return bfloat16(x * 0.25F); }, ordered);
    c.reduce_scatter(in.all(), outs[1], sum, then(scale{0.25F}, cast<bfloat16>), ordered);
    auto const by_block = [](std::size_t, std::span<float const> values, std::span<bfloat16> out) noexcept {
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = bfloat16(values[i] * 0.25F);
    };
    c.reduce_scatter(in.all(), outs[2], sum, by_block, ordered);
    auto call = c.start_reduce_scatter(in.all(), outs[3], sum, by_block, ordered);
    call.wait();
    for (auto const& out : outs) EXPECT_EQ(std::memcmp(out.data(), outs[0].data(), n * sizeof(bfloat16)), 0);
    EXPECT_NE(static_cast<float>(outs[0][n - 1]), 0);
  });
}

TEST_P(fused, reduce_scatter_takes_operations_that_prepare_widen_or_do_not_commute) {
  on_ranks(GetParam().where, GetParam().ranks, [&](comm& c) {
    std::size_t const n = 1500;
    auto const ranks = static_cast<std::size_t>(c.size());
    some_buffer<std::int32_t> in(c, GetParam(), n * ranks);
    for (std::size_t i = 0; i < n * ranks; ++i)
      in.all()[i] = std::numeric_limits<std::int32_t>::max() - static_cast<std::int32_t>(i);
    std::vector<std::int64_t> out(n);
    c.reduce_scatter(in.all(), out, avg, [](std::size_t i, std::int32_t x) noexcept {
      return std::int64_t{x} * 2 + static_cast<std::int64_t>(i);
    });
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i)
      wrong += out[i] !=
               std::int64_t{in.all()[static_cast<std::size_t>(c.rank()) * n + i]} * 2 + static_cast<std::int64_t>(i);
    EXPECT_EQ(wrong, 0U);

    some_buffer<bfloat16> narrow(c, GetParam(), n * ranks);
    for (bfloat16& x : narrow.all()) x = bfloat16(3.0F);
    std::vector<float> sums(n);
    c.reduce_scatter(narrow.all(), sums, premul_sum(static_cast<float>(c.rank() + 1)), cast<float>);
    EXPECT_EQ(sums[n - 1], static_cast<float>(3 * c.size() * (c.size() + 1) / 2));

    some_buffer<affine> maps(c, GetParam(), ranks);
    for (affine& m : maps.all()) m = {static_cast<std::uint32_t>(c.rank() + 2), 1, 1};
    std::vector<std::uint32_t> offsets(1);
    c.reduce_scatter(maps.all(), offsets, composition{},
                     [](std::size_t, affine const& m) noexcept { return m.offset; });
    affine expected{2, 1, 1};
    for (rank_t r = 1; r < c.size(); ++r) expected = composition{}(expected, {static_cast<std::uint32_t>(r + 2), 1, 1});
    EXPECT_EQ(offsets[0], expected.offset);
  });
}

TEST_P(fused, all_gather_hands_out_what_owners_make) {
  on_ranks(GetParam().where, GetParam().ranks, [&](comm& c) {
    for (std::size_t const around : lengths) {
      auto const counts = uneven(c.size(), around);
      std::size_t total = 0;
      for (std::size_t const n : counts) total += n;
      some_buffer<float16> out(c, GetParam(), total);
      std::size_t made = 0;
      c.all_gather_v([&, r = c.rank()](std::size_t i) noexcept { return ++made, rough<float16>(r, i); }, out.all(),
                     counts);
      EXPECT_EQ(made, counts[static_cast<std::size_t>(c.rank())]);
      std::size_t at = 0, wrong = 0;
      for (rank_t r = 0; r < c.size(); ++r)
        for (std::size_t i = 0; i < counts[static_cast<std::size_t>(r)]; ++i) {
          float16 const expected = rough<float16>(r, i), found = out.all()[at++];
          wrong += std::memcmp(&expected, &found, sizeof found) != 0;
        }
      EXPECT_EQ(wrong, 0U) << "around " << around << " on rank " << c.rank();
    }
    std::vector<int> even(static_cast<std::size_t>(c.size()) * 3);
    c.start_all_gather(
         [r = c.rank()](std::size_t first, std::span<int> block) noexcept {
           for (std::size_t i = 0; i < block.size(); ++i) block[i] = r * 10 + static_cast<int>(first + i);
         },
         even)
        .wait();
    for (std::size_t i = 0; i < even.size(); ++i) EXPECT_EQ(even[i], static_cast<int>(i / 3 * 10 + i % 3));
  });
}

TEST(fused_calls, take_turns_with_all_others) {
  for (medium const where : {medium::in_process, medium::shm})
    on_ranks(where, 3, [](comm& c) {
      auto registered = c.allocate<float>(30'000);
      std::vector<float> plain(30'000, 1.0F), part(10'000);
      for (int turn = 0; turn < 8; ++turn) {
        std::fill(registered.begin(), registered.end(), static_cast<float>(turn));
        c.reduce_scatter(turn % 2 == 0 ? std::span<float>(registered) : std::span<float>(plain), part, sum,
                         cast<float>);
        EXPECT_EQ(part[9'999], turn % 2 == 0 ? static_cast<float>(3 * turn) : 3.0F);
        c.all_reduce(registered, sum);
        EXPECT_EQ(registered[1], static_cast<float>(3 * turn));
        std::vector<float> windows(30'000, 1.0F);
        c.all_reduce(windows, sum);
        EXPECT_EQ(windows[29'999], 3.0F);
        c.all_gather([turn](std::size_t i) noexcept { return static_cast<float>(i) + static_cast<float>(turn); },
                     turn % 3 == 0 ? std::span<float>(registered) : std::span<float>(windows));
        EXPECT_EQ((turn % 3 == 0 ? registered[29'999] : windows[29'999]), static_cast<float>(9'999 + turn));
        c.reduce_scatter(plain, part, sum);
        EXPECT_EQ(part[0], 3.0F);
      }
    });
}

/// One rank is slow, so that the other one would be more windows ahead than there are, if it could.
TEST(fused_calls, pass_through_more_windows_than_there_are) {
  for (medium const where : {medium::in_process, medium::shm})
    on_ranks(where, 2, [](comm& c) {
      constexpr std::size_t n = 800'000;
      std::vector<float> all(2 * n), own(n);
      auto const value = [](rank_t r, std::size_t i) {
        return static_cast<float>((i + static_cast<std::size_t>(r)) % 997);
      };
      for (rank_t const slow : {0, 1}) {
        auto const dawdle = [nap = c.rank() == slow](std::size_t first) noexcept {
          if (nap && first < 1024) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        };
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = value(c.rank(), i);
        c.reduce_scatter(all, own, sum, [&](std::size_t i, std::span<float const> sums, std::span<float> out) noexcept {
          dawdle(i);
          std::copy(sums.begin(), sums.end(), out.begin());
        });
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < n; ++i) {
          std::size_t const place = static_cast<std::size_t>(c.rank()) * n + i;
          wrong += own[i] != value(0, place) + value(1, place);
        }
        EXPECT_EQ(wrong, 0U) << "sums on rank " << c.rank();
        c.all_gather(
            [&, me = c.rank()](std::size_t first, std::span<float> out) noexcept {
              dawdle(first);
              for (std::size_t i = 0; i < out.size(); ++i) out[i] = value(me, first + i);
            },
            all);
        wrong = 0;
        for (std::size_t i = 0; i < 2 * n; ++i) wrong += all[i] != value(i < n ? 0 : 1, i % n);
        EXPECT_EQ(wrong, 0U) << "gathered on rank " << c.rank();
      }
    });
}

TEST(fused_calls, are_not_mistaken_for_plain_ones) {
  for (medium const where : media)
    on_ranks(where, 2, [](comm& c) {
      std::vector<float> in(2000, 1.0F), out(1000);
      try {
        if (c.rank() == 0)
          c.reduce_scatter(in, out, sum, cast<float>);
        else
          c.reduce_scatter(in, out, sum);
        ADD_FAILURE() << "rank " << c.rank() << " went on";
      } catch (collective_mismatch const& e) {
        EXPECT_NE(std::string(e.what()).find("sum+epilogue"), std::string::npos) << e.what();
      }
    });
}

TEST(fused_calls, refuse_what_does_not_fit_in_a_sentence) {
  on_ranks(medium::in_process, 2, [](comm& c) {
    std::vector<float> in(10), out(4);
    EXPECT_THROW(c.reduce_scatter(in, out, sum, cast<float>), invalid_argument);
    EXPECT_THROW(c.reduce_scatter(in, std::span(in).first(5), sum, cast<float>), invalid_argument);
    EXPECT_THROW(c.all_gather([](std::size_t) noexcept { return 1.0F; }, std::span(in).first(9)), invalid_argument);
    sharded_state state(std::span<float const>(in), c.rank(), c.size(), sgd{});
    EXPECT_THROW(sync_and_step(c, in, out, state), invalid_argument);
    std::fill(in.begin(), in.end(), 1.0F);
    c.all_reduce(in, sum);
    EXPECT_EQ(in[9], 2.0F);
  });
}

/// The same step, every pass on its own and one element at a time; by one rank, for all.
template <class T, class U, class O>
struct reference {
  O rule{};
  int ranks = 1;
  std::vector<U> weights{};
  std::vector<float> master{}, gradient{};
  std::array<std::vector<float>, O::moments> moments{};
  std::uint64_t steps = 0;

  template <class Gradient>
  step_report step(Gradient const& of, step_options const& options) {
    std::size_t const n = weights.size();
    if (steps == 0) {
      master.assign(weights.begin(), weights.end());
      moments.fill(std::vector<float>(n));
    }
    gradient.clear();
    for (std::size_t i = 0; i < n; ++i)
      gradient.push_back(canonical<float>([&](rank_t r) { return static_cast<float>(of(r, i)); }, 0, ranks) /
                         static_cast<float>(ranks));
    double const total = canonical<double>([&](rank_t r) { return squares_of(shard_of(n, r, ranks)); }, 0, ranks);
    double const scaled = total * static_cast<double>(options.scale) * static_cast<double>(options.scale);
    step_report report{std::sqrt(scaled), !std::isfinite(total)};
    if (report.skipped) return report;
    float factor = options.scale;
    if (options.max_norm / (report.norm + 1e-6) < 1)
      factor *= static_cast<float>(options.max_norm / (report.norm + 1e-6));
    auto const update = rule.at(++steps);
    for (std::size_t i = 0; i < n; ++i) {
      [&]<std::size_t... K>(std::index_sequence<K...>) { update(gradient[i] * factor, master[i], moments[K][i]...); }
      (std::make_index_sequence<O::moments>{});
      weights[i] = static_cast<U>(master[i]);
    }
    return report;
  }

  /// Element i is added to sum i mod 16.
  double squares_of(shard s) const {
    std::array<double, 16> sums{};
    for (std::size_t i = 0; i < s.count; ++i)
      sums[i % 16] += static_cast<double>(gradient[s.first + i]) * static_cast<double>(gradient[s.first + i]);
    auto const of = [&](std::size_t k) { return sums[k] + sums[k + 8]; };
    auto const four = [&](std::size_t k) { return of(k) + of(k + 4); };
    return (four(0) + four(2)) + (four(1) + four(3));
  }
};

template <class T, class U, class O>
void steps_like_separate_passes(fused_setting const& s, O const& rule, step_options options) {
  constexpr std::size_t steps = 3;
  options.call.ordered = true;
  struct expectation {
    std::size_t n;
    std::vector<U> first;
    std::array<reference<T, U, O>, steps> after;
    std::array<step_report, steps> reports;
  };
  std::vector<expectation> all;
  for (std::size_t const n : {1U, 3U, 64U, 65U, 1000U, 30'011U}) {
    expectation& e = all.emplace_back();
    e.n = n;
    for (std::size_t i = 0; i < n; ++i) e.first.push_back(static_cast<U>(static_cast<float>(i % 97) / 97));
    reference<T, U, O> model{rule, s.ranks, e.first};
    for (std::size_t step = 0; step < steps; ++step) {
      e.reports[step] = model.step([&](rank_t r, std::size_t i) { return rough<T>(r, i, step); }, options);
      e.after[step] = model;
    }
  }
  on_ranks(s.where, s.ranks, [&](comm& c) {
    for (expectation const& e : all) {
      some_buffer<T> gradients(c, s, e.n);
      some_buffer<U> weights(c, s, e.n);
      std::copy(e.first.begin(), e.first.end(), weights.all().begin());
      sharded_state state(std::span<U const>(weights.all()), c.rank(), c.size(), rule);
      for (std::size_t step = 0; step < steps; ++step) {
        for (std::size_t i = 0; i < e.n; ++i) gradients.all()[i] = rough<T>(c.rank(), i, step);
        step_report const found = sync_and_step(c, gradients.all(), weights.all(), state, options);
        EXPECT_EQ(found.norm, e.reports[step].norm);
        EXPECT_FALSE(found.skipped);
        auto const& expected = e.after[step];
        ASSERT_EQ(std::memcmp(weights.all().data(), expected.weights.data(), e.n * sizeof(U)), 0)
            << e.n << " weights in step " << step << " on rank " << c.rank();
        ASSERT_TRUE(std::equal(state.master().begin(), state.master().end(),
                               expected.master.begin() + static_cast<std::ptrdiff_t>(state.own().first)));
      }
    }
  });
}

TEST_P(fused, sync_and_step_has_the_bits_of_separate_passes) {
  steps_like_separate_passes<bfloat16, bfloat16>(GetParam(), adamw{.learning_rate = 0.1}, {.max_norm = 0.5});
  if (GetParam().ranks > 3) return;
  steps_like_separate_passes<float16, float>(GetParam(), sgd_momentum{.nesterov = true}, {.scale = 0.125F});
  steps_like_separate_passes<float, float16>(GetParam(), sgd{}, {.scale = 0.5F, .max_norm = 1e6});
}

/// One gradient of one rank is enough for all to skip the step, and to say so.
TEST_P(fused, a_gradient_that_is_not_finite_skips_the_step_on_all_ranks) {
  on_ranks(GetParam().where, GetParam().ranks, [&](comm& c) {
    std::size_t const n = 5000;
    some_buffer<bfloat16> gradients(c, GetParam(), n), weights(c, GetParam(), n);
    for (bfloat16& w : weights.all()) w = bfloat16(1.0F);
    sharded_state state(std::span<bfloat16 const>(weights.all()), c.rank(), c.size(), adamw{.learning_rate = 0.1});
    for (float const odd :
         {1.0F, std::numeric_limits<float>::quiet_NaN(), 1.0F, std::numeric_limits<float>::infinity()}) {
      for (bfloat16& g : gradients.all()) g = bfloat16(0.5F);
      if (c.rank() == c.size() - 1) gradients.all()[17] = bfloat16(odd);
      std::vector<bfloat16> const before(weights.all().begin(), weights.all().end());
      std::vector<float> const master(state.master().begin(), state.master().end());
      std::uint64_t const steps = state.steps;
      step_report const found = sync_and_step(c, gradients.all(), weights.all(), state, {.max_norm = 1.0});
      bool const finite = odd == 1.0F;
      EXPECT_EQ(found.skipped, !finite);
      EXPECT_EQ(is_finite(found.norm), finite);
      EXPECT_EQ(state.steps, steps + finite);
      EXPECT_EQ(std::memcmp(before.data(), weights.all().data(), n * sizeof(bfloat16)) == 0, !finite);
      EXPECT_EQ(std::equal(master.begin(), master.end(), state.master().begin()), !finite);
    }
  });
}

}  // namespace
