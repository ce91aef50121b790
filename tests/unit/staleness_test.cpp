#include <rondo/async/staleness.hpp>

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace {

using namespace rondo;
using namespace std::chrono_literals;

constexpr auto start = staleness_ledger::time{} + 1h;

/// A ledger whose time goes by when it is told to.
struct book : staleness_ledger {
  book(std::size_t workers, staleness_bounds bounds, duration lease = 1h)
      : staleness_ledger(workers, bounds, lease, start) {}

  bool asks_to_pull(std::size_t w) { return hear(w, now), may_pull(w, now); }
  bool asks_to_push(std::size_t w) { return hear(w, now), may_push(w, now); }
  /// A whole step, which must be allowed.
  void step(std::size_t w) {
    ASSERT_TRUE(asks_to_pull(w));
    pull(w, now);
    ASSERT_TRUE(asks_to_push(w));
    ASSERT_TRUE(push(w, now));
  }

  time now = start;
};

TEST(staleness, a_worker_that_is_ahead_by_more_than_the_lead_waits_for_the_slowest) {
  book b(3, {.lead = 2});
  b.step(1);
  for (int i = 0; i < 3; ++i) b.step(0);
  EXPECT_FALSE(b.asks_to_pull(0));
  EXPECT_EQ(b.lead(0, b.now), 3U);
  b.step(1);
  EXPECT_FALSE(b.may_pull(0, b.now)) << "worker 2 has made no step";
  b.step(2);
  EXPECT_TRUE(b.may_pull(0, b.now));
  EXPECT_EQ(b.largest_lead(), 2U);
}

TEST(staleness, no_lead_keeps_all_in_step) {
  book b(2, {.lead = 0});
  b.step(0);
  EXPECT_FALSE(b.asks_to_pull(0));
  b.step(1);
  EXPECT_TRUE(b.may_pull(0, b.now));
}

TEST(staleness, a_silent_worker_bounds_nobody_until_it_speaks) {
  book b(2, {.lead = 1}, 10s);
  b.step(1);
  b.step(0);
  b.step(0);
  b.step(0);
  EXPECT_FALSE(b.asks_to_pull(0));
  EXPECT_EQ(b.next_lapse(b.now), start + 10s);
  b.now += 10s;
  EXPECT_TRUE(b.may_pull(0, b.now)) << "worker 1 is silent";
  b.pull(0, b.now);
  EXPECT_TRUE(b.push(0, b.now));
  EXPECT_TRUE(b.asks_to_pull(1));
  EXPECT_TRUE(b.asks_to_pull(0)) << "worker 1 takes up the pace of the others instead of holding them back";
  EXPECT_EQ(b.steps(1), 4U);
}

TEST(staleness, a_worker_that_waits_is_not_silent) {
  book b(2, {.lead = 0}, 10s);
  b.step(0);
  EXPECT_FALSE(b.asks_to_pull(0));
  b.now += 5s;
  b.hear(1, b.now);
  b.pull(1, b.now);
  b.now += 9s;
  EXPECT_FALSE(b.may_pull(0, b.now));
  EXPECT_EQ(b.next_lapse(b.now), start + 15s);
  b.now += 1s;
  EXPECT_TRUE(b.may_pull(0, b.now));
}

TEST(staleness, what_a_silent_worker_computed_is_dropped_if_the_others_are_too_far_by_then) {
  for (std::uint64_t const bound : {3U, 2U}) {
    book b(2, {.delay = bound}, 10s);
    ASSERT_TRUE(b.asks_to_pull(1));
    b.pull(1, b.now);
    b.now += 10s;
    for (int i = 0; i < 3; ++i) b.step(0);
    EXPECT_TRUE(b.asks_to_push(1));
    EXPECT_EQ(b.push(1, b.now), bound == 3) << "three updates have come in between";
    EXPECT_EQ(b.updates(), bound == 3 ? 4U : 3U);
    b.step(1);
  }
}

TEST(staleness, what_others_did_before_they_left_makes_a_gradient_stale_too) {
  book b(2, {.lead = 2}, 10s);
  ASSERT_TRUE(b.asks_to_pull(1));
  b.pull(1, b.now);
  b.now += 10s;
  for (int i = 0; i < 4; ++i) b.step(0);
  b.drop(0);
  EXPECT_TRUE(b.asks_to_push(1));
  EXPECT_FALSE(b.push(1, b.now));
  b.step(1);
}

TEST(staleness, a_push_waits_while_it_would_make_another_gradient_too_old) {
  book b(2, {.delay = 2});
  ASSERT_TRUE(b.asks_to_pull(1));
  b.pull(1, b.now);
  b.step(0);
  b.step(0);
  ASSERT_TRUE(b.asks_to_pull(0));
  b.pull(0, b.now);
  EXPECT_FALSE(b.asks_to_push(0));
  ASSERT_TRUE(b.asks_to_push(1));
  EXPECT_TRUE(b.push(1, b.now));
  EXPECT_TRUE(b.may_push(0, b.now));
  EXPECT_EQ(b.largest_delay(), 2U);
}

TEST(staleness, a_push_without_a_pull_counts_for_nothing) {
  book b(2, {});
  b.step(0);
  EXPECT_TRUE(b.asks_to_push(0));
  EXPECT_FALSE(b.push(0, b.now));
  EXPECT_EQ(b.updates(), 1U);
}

/// Workers of random speed that fall silent, come back and die: nothing exceeds its bound, by a count of its own, and
/// somebody always goes on.
class crowd : public testing::TestWithParam<staleness_bounds> {};

TEST_P(crowd, keeps_the_bounds_and_never_stops) {
  auto const bounds = GetParam();
  std::mt19937_64 random(7);
  for (int round = 0; round < 40; ++round) {
    std::size_t const n = 2 + random() % 4;
    staleness_bounds const own{bounds.lead, std::max<std::uint64_t>(bounds.delay, n - 1)};
    auto const lease = 50ms;
    book b(n, own, lease);
    enum class doing { nothing, pulling, computing, pushing };
    struct worker {
      doing what = doing::nothing;
      staleness_ledger::time until = start;
      std::uint64_t view = 0, steps = 0;
      bool here = true;
    };
    std::vector<worker> workers(n);
    std::uint64_t updates = 0, dropped = 0;
    for (int event = 0, idle = 0; event < 3000; ++event) {
      bool moved = false;
      for (std::size_t w = 0; w < n; ++w) {
        worker& me = workers[w];
        if (!me.here) continue;
        if (n > 2 && w == n - 1 && event == 2000) {
          me.here = false;
          b.drop(w);
          continue;
        }
        if ((me.what == doing::nothing || me.what == doing::computing) && b.now >= me.until) {
          me.what = me.what == doing::nothing ? doing::pulling : doing::pushing;
          b.hear(w, b.now);
        }
        if (me.what == doing::pulling && b.may_pull(w, b.now)) {
          ASSERT_LE(b.lead(w, b.now), own.lead);
          b.pull(w, b.now);
          me.view = updates;
          auto const pause = (w + 1) * (random() % 8) + (random() % 50 == 0 ? 120 : 0);
          me.until = b.now + std::chrono::milliseconds(pause);
          me.what = doing::computing;
          moved = true;
        } else if (me.what == doing::pushing && b.may_push(w, b.now)) {
          if (b.push(w, b.now)) {
            ASSERT_LE(updates - me.view, own.delay);
            ++updates;
          } else {
            ++dropped;
          }
          me.what = doing::nothing;
          moved = true;
        }
      }
      if (moved) {
        idle = 0;
        continue;
      }
      b.now += 1ms;
      ASSERT_LT(++idle, 400) << "nobody goes on";
    }
    EXPECT_EQ(updates, b.updates());
    EXPECT_LE(b.largest_delay(), own.delay);
    EXPECT_LE(b.largest_lead(), own.lead);
    EXPECT_LT(dropped, updates) << "few gradients are lost";
  }
}

INSTANTIATE_TEST_SUITE_P(bounds, crowd,
                         testing::Values(staleness_bounds{}, staleness_bounds{.lead = 0}, staleness_bounds{.lead = 3},
                                         staleness_bounds{.delay = 0}, staleness_bounds{.delay = 7},
                                         staleness_bounds{.lead = 2, .delay = 5}));

}  // namespace
