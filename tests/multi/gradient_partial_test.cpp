#include "gradient.hpp"
#include <rondo/gradient/partial.hpp>
#include <rondo/gradient/synchronizer.hpp>

#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>

namespace {

using namespace gradient_test;
using namespace std::chrono_literals;

constexpr std::size_t elements = 1501;

/// What a rank has for an element in a step: a whole number. Means over as many as 8 are whole, too, and no sum of them
/// is rounded.
float whole(rank_t rank, int step, std::size_t i) {
  std::uint64_t const x = (i + 1) * 0x9e3779b97f4a7c15U ^ static_cast<std::uint64_t>(rank * 64 + step) * 0x94d049bbU;
  return 840.0F * static_cast<float>(static_cast<int>((x ^ x >> 31) % 201) - 100);
}

/// What is known about all ranks after a step.
struct ledger {
  explicit ledger(int ranks) : left(static_cast<std::size_t>(ranks)) {}

  std::vector<int> left;                                        ///< by rank: the step whose gradient is left over, or 0
  std::vector<double> applied = std::vector<double>(elements);  ///< by element, in all steps

  /// One step, from 1. Who is in time, and what is left over, says which gradients have to be in its result.
  void check(int step, partial_report const& report, std::span<float const> result) {
    std::vector<double> sums(elements);
    double weight = 0;
    auto const take = [&](std::size_t rank, int from) {
      ++weight;
      for (std::size_t i = 0; i < elements; ++i)
        sums[i] += static_cast<double>(whole(static_cast<rank_t>(rank), from, i));
    };
    for (std::size_t r = 0; r < left.size(); ++r) {
      if (left[r] != 0) take(r, left[r]);
      if (report.in_time.at(r)) take(r, step);
      left[r] = report.in_time[r] ? 0 : step;
    }
    EXPECT_EQ(report.weight, weight);
    for (std::size_t i = 0; i < elements; ++i) {
      ASSERT_EQ(static_cast<double>(result[i]), weight == 0 ? 0 : sums[i] / weight) << "element " << i;
      applied[i] += static_cast<double>(result[i]) * weight;
    }
  }
};

/// One tensor, whose gradient has guard elements around it.
struct guarded {
  static constexpr float guard = -3.25F;

  std::vector<float> values = std::vector<float>(elements), memory = std::vector<float>(elements + 32, guard);
  std::span<float> gradient = std::span(memory).subspan(16, elements);

  void check() const {
    EXPECT_EQ(std::count(memory.begin(), memory.begin() + 16, guard), 16);
    EXPECT_EQ(std::count(memory.end() - 16, memory.end(), guard), 16);
  }
};

/// Some rank stalls in each step but the last, for longer than the others wait. In all steps together every gradient
/// takes part once, whatever the machine does to the ranks that do not stall.
TEST(partial_synchronizer, what_is_applied_and_what_is_carried_over_are_all_gradients) {
  for (int const ranks : {2, 3, 4}) {
    constexpr int steps = 8;
    on_ranks(ranks, [&](comm& c) {
      guarded w;
      partial_synchronizer sync(c, {{"w", w.values, w.gradient}}, 5ms, {.summed = true});
      ledger seen(ranks);
      std::mt19937_64 random(17);
      int late = 0;
      for (int k = 1; k <= steps; ++k) {
        auto const stalls = static_cast<rank_t>(random() % static_cast<std::uint64_t>(ranks));
        auto step = sync.begin();
        for (std::size_t i = 0; i < elements; ++i) w.gradient[i] = whole(c.rank(), k, i);
        if (stalls == c.rank()) std::this_thread::sleep_for(60ms);
        step.ready(0);
        auto const report = step.finish();
        seen.check(k, report, w.gradient);
        expect_same_bits(c, std::as_bytes(w.gradient));
        w.check();
        late += !report.in_time[static_cast<std::size_t>(stalls)];
      }
      EXPECT_GT(late, 0) << "nobody was ever late: the test has shown nothing";

      std::vector<double> carried(elements), all(elements);
      for (std::size_t i = 0; float const value : sync.carried<float>(0)) carried[i++] = static_cast<double>(value);
      c.all_reduce(carried, sum);
      for (std::size_t i = 0; i < elements; ++i)
        for (rank_t r = 0; r < ranks; ++r)
          for (int k = 1; k <= steps; ++k) all[i] += static_cast<double>(whole(r, k, i));
      for (std::size_t i = 0; i < elements; ++i) ASSERT_EQ(seen.applied[i] + carried[i], all[i]) << "element " << i;
    });
  }
}

TEST(partial_synchronizer, a_rank_that_is_always_late_takes_part_one_step_later) {
  on_ranks(3, [](comm& c) {
    guarded w;
    partial_synchronizer sync(c, {{"w", w.values, w.gradient}}, 2ms, {.summed = true});
    ledger seen(3);
    int late = 0;
    for (int k = 1; k <= 5; ++k) {
      auto step = sync.begin();
      for (std::size_t i = 0; i < elements; ++i) w.gradient[i] = whole(c.rank(), k, i);
      if (c.rank() == 2) std::this_thread::sleep_for(50ms);
      step.ready(0);
      auto const report = step.finish();
      seen.check(k, report, w.gradient);
      late += !report.in_time[2];
    }
    EXPECT_GE(late, 3);
    EXPECT_EQ(sync.stragglers().slowest(), 2);

    sync.bound = 1h;
    auto step = sync.begin();
    for (std::size_t i = 0; i < elements; ++i) w.gradient[i] = whole(c.rank(), 6, i);
    if (c.rank() == 2) std::this_thread::sleep_for(50ms);
    step.ready(0);
    auto const report = step.finish();
    seen.check(6, report, w.gradient);
    EXPECT_EQ(report.in_time, std::vector<bool>(3, true));
    EXPECT_TRUE(sync.carried<float>(0).empty());
  });
}

/// With a bound that nobody exceeds it is a synchronizer, bit for bit: weights, clipping, loss scale and all.
TEST(partial_synchronizer, has_the_bits_of_a_synchronizer_if_nobody_is_late) {
  for (int const ranks : {1, 2, 3, 5})
    on_ranks(
        ranks,
        [&](comm& c) {
          small_net<float> one, other;
          gradient_options const options{.buckets = {.first = 256, .most = 1 << 11}, .max_norm = 0.5};
          synchronizer whole(c, one.parameters(), options);
          partial_synchronizer partial(c, other.parameters(), 1min, options);
          for (std::uint64_t k = 0; k < 4; ++k) {
            auto const learn = [&](auto& net, auto& sync) {
              bool const has_data = k != 2 || c.rank() != 0;
              auto step = sync.begin({.weight = has_data ? 1.0 + c.rank() : 0, .loss_scale = 256});
              net.clear();
              net.sample(10 * k + static_cast<std::uint64_t>(c.rank()));
              net.each([](auto const&, auto& gradient) {
                for (float& g : gradient) g *= 256;
              });
              for (std::size_t id : shuffled(4, k))
                if (has_data) step.ready(id);
              return step.finish();
            };
            gradient_report const expected = learn(one, whole), got = learn(other, partial);
            EXPECT_EQ(got.norm, expected.norm);
            EXPECT_EQ(got.clip, expected.clip);
            EXPECT_EQ(got.weight, expected.weight);
            EXPECT_TRUE(got.finite);
            EXPECT_EQ(one.dB, other.dB);
            EXPECT_EQ(one.db, other.db);
            EXPECT_EQ(one.dA, other.dA);
            EXPECT_EQ(one.da, other.da);
          }
        },
        true);
}

TEST(partial_synchronizer, narrow_and_wide_types_and_steps_that_do_not_synchronise) {
  on_ranks(2, [](comm& c) {
    std::vector<bfloat16> v(7), dv(7);
    std::vector<double> w(5), dw(5);
    std::vector<parameter> const both{{"v", v, dv}, {"w", w, dw}};
    partial_synchronizer sync(c, both, 1min, {.summed = true, .allow_unused = true});
    for (bool const last : {false, true}) {
      auto step = sync.begin({.weight = 2, .synchronize = last});
      for (auto& g : dv) g = bfloat16(static_cast<float>(g) + 16);
      for (auto& g : dw) g += c.rank() == 0 ? 4e200 : 0;
      step.ready(0);
      if (c.rank() == 0) step.ready(1);
      auto const report = step.finish();
      EXPECT_EQ(report.weight, last ? 8 : 2);
      EXPECT_EQ(report.in_time.size(), last ? 2U : 0U);
      EXPECT_TRUE(report.finite) << "squares overflow where values do not";
    }
    EXPECT_EQ(static_cast<float>(dv[6]), 8);
    EXPECT_EQ(dw[4], 1e200);
    EXPECT_THROW((void)sync.carried<bfloat16>(0), invalid_argument);
    dw[0] = c.rank() == 0 ? std::nan("") : 0;
    auto step = sync.begin();
    step.ready(0);
    step.ready(1);
    EXPECT_FALSE(step.finish().finite);
  });
}

TEST(partial_synchronizer, a_report_adds_up_and_what_is_late_is_hidden) {
  on_ranks(2, [](comm& c) {
    guarded w;
    partial_synchronizer sync(c, {{"w", w.values, w.gradient}}, 5ms);
    for (int k = 0; k < 3; ++k) {
      auto const before = std::chrono::steady_clock::now();
      auto step = sync.begin();
      std::this_thread::sleep_for(c.rank() == 1 ? 100ms : 20ms);
      step.ready(0);
      auto const report = step.finish();
      std::chrono::duration<double> const wall = std::chrono::steady_clock::now() - before;
      EXPECT_NEAR(report.wall() / wall, 1, 0.05);
      if (c.rank() == 1 && !report.in_time[1]) { EXPECT_GT(report.hidden.count(), 0); }
      EXPECT_GE(report.bytes, sizeof(float) * elements);
    }
  });
}

TEST(partial_synchronizer, ends_for_all_when_a_rank_gives_up_and_goes_on_without_none) {
  on_ranks(3, [](comm& c) {
    guarded w;
    {
      partial_synchronizer sync(c, {{"w", w.values, w.gradient}}, 1min);
      auto const train = [&] {
        auto step = sync.begin();
        if (c.rank() != 2) step.ready(0);
        step.finish();
      };
      auto const start = std::chrono::steady_clock::now();
      if (c.rank() == 2)
        expect_says(message_of<invalid_argument>(train), "'w' (float32, 1501 elements) was not ready on rank 2");
      else
        expect_says(message_of<error>(train), "rank 2 gave up a step");
      EXPECT_LT(std::chrono::steady_clock::now() - start, 5s) << "long before the deadline";
      EXPECT_THROW((void)sync.begin(), invalid_argument);
    }
    partial_synchronizer sync(c, {{"w", w.values, w.gradient}}, 1ms, {.call = {.deadline = 300ms}});
    if (c.rank() == 1) {
      std::this_thread::sleep_for(1s);  // it does not even begin
      EXPECT_THROW(sync.begin().finish(), error);
      return;
    }
    auto step = sync.begin();
    step.ready(0);
    try {
      step.finish();
      ADD_FAILURE() << "a rank that has not begun a step is not left behind";
    } catch (deadline_exceeded const& e) { EXPECT_EQ(e.rank(), 1) << e.what(); }
  });
}

TEST(partial_synchronizer, refuses_what_makes_no_sense) {
  on_ranks(1, [](comm& c) {
    guarded w;
    expect_says(message_of<invalid_argument>([&] {
                  partial_synchronizer(c, {{"w", w.values}}, 1ms);
                }),
                "give it a gradient of its own");
    partial_synchronizer sync(c, {{"w", w.values, w.gradient}}, 1ms);
    EXPECT_THROW((void)sync.begin({.weight = -1}), invalid_argument);
    auto step = sync.begin();
    EXPECT_THROW((void)sync.begin(), invalid_argument);
    EXPECT_THROW(step.ready(1), invalid_argument);
    step.ready(0);
    expect_says(message_of<invalid_argument>([&] { step.ready(0); }), "'w'");
    step.finish();
    EXPECT_THROW(step.finish(), invalid_argument);
  });
}

}  // namespace
