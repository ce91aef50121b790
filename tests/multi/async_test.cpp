#include <rondo/async/elastic_averaging.hpp>
#include <rondo/async/local_sgd.hpp>
#include <rondo/async/parameter_server.hpp>
#include <rondo/transports/in_process.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <gtest/gtest.h>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace rondo;
using comm = communicator<in_process>;

/// values += gradient
struct adds {
  void operator()(std::span<float> values, std::span<float const> gradient) const noexcept {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += gradient[i];
  }
};

struct layout {
  int ranks;
  std::vector<rank_t> servers;
  std::size_t parameters;
};

class sharded : public testing::TestWithParam<layout> {};

/// Every worker adds whole numbers, so that the sum has one right value whatever the order.
TEST_P(sharded, parameters_end_as_the_sum_of_all_gradients) {
  layout const p = GetParam();
  constexpr int steps = 20;
  std::vector<float> final(p.parameters, -1.0F);
  std::atomic<std::uint64_t> updates{0};
  int const workers = p.ranks - static_cast<int>(p.servers.size());
  in_process::run(p.ranks, [&, n = p.parameters](comm& c) {
    parameter_server server(c, n, {.servers = p.servers, .bounds = {.lead = 3}});
    EXPECT_EQ(server.serves(), std::count(p.servers.begin(), p.servers.end(), c.rank()) != 0);
    if (server.serves()) {
      auto const mine = server.shard(std::span(final));
      std::iota(mine.begin(), mine.end(), 1.0F);
      auto const seen = server.serve(mine, adds{});
      updates += seen.updates;
      EXPECT_LE(seen.largest_lead, 3U);
      for (auto const& w : seen.workers) {
        EXPECT_EQ(w.how, worker_ending::left) << w.why;
        EXPECT_EQ(w.updates, std::uint64_t{steps});
        EXPECT_EQ(w.pulls, std::uint64_t{steps});
        EXPECT_EQ(w.stale, 0U);
      }
    } else {
      std::vector<float> values(n), gradient(n);
      for (int step = 0; step < steps; ++step) {
        auto const read = server.pull(values);
        EXPECT_LE(read.lead, 3U);
        for (std::size_t i = 0; i < n; ++i)
          gradient[i] = static_cast<float>(server.number() + 1) * static_cast<float>(i % 7);
        server.push(gradient);
      }
    }
  });
  EXPECT_EQ(updates, std::uint64_t{steps} * static_cast<std::uint64_t>(workers) * p.servers.size());
  float const total = static_cast<float>(steps * workers * (workers + 1) / 2);
  for (std::size_t s = 0; s < p.servers.size(); ++s) {
    std::size_t const first = p.parameters * s / p.servers.size(), last = p.parameters * (s + 1) / p.servers.size();
    for (std::size_t i = first; i < last; ++i)
      ASSERT_EQ(final[i], static_cast<float>(i - first + 1) + total * static_cast<float>(i % 7)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(over, sharded,
                         testing::Values(layout{2, {0}, 1001}, layout{4, {3}, 1}, layout{5, {1, 3}, 300'001},
                                         layout{5, {4, 0, 2}, 17}, layout{3, {2, 1}, 1}, layout{7, {0}, 33}),
                         [](auto const& info) {
                           return std::to_string(info.param.ranks) + "_ranks_" +
                                  std::to_string(info.param.servers.size()) + "_servers_" +
                                  std::to_string(info.param.parameters);
                         });

/// A gradient says from which version it was computed; the rule, which counts for itself, finds out how old it is.
TEST(parameter_server, a_slow_worker_stays_within_the_delay_and_holds_nobody_up_before) {
  constexpr std::size_t count = 1000;
  constexpr std::uint64_t delay = 12, enough = 100;
  std::array<std::atomic<std::uint64_t>, 3> steps{};
  std::uint64_t oldest = 0, calls = 0;
  in_process::run(4, [&](comm& c) {
    parameter_server server(c, count, {.bounds = {.delay = delay}});
    std::vector<float> values(count);
    if (server.serves()) {
      auto const seen = server.serve(values, [&](std::span<float> v, std::span<float const> g) noexcept {
        oldest = std::max(oldest, calls - static_cast<std::uint64_t>(g[0]));
        v[0] = static_cast<float>(++calls);
      });
      EXPECT_EQ(seen.largest_delay, oldest);
      EXPECT_EQ(seen.updates, calls);
      return;
    }
    for (;;) {
      auto const read = server.pull(values);
      EXPECT_EQ(static_cast<float>(read.updates), values[0]) << "a pull sees every push whole";
      if (read.updates >= enough) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(server.number() == 0 ? 100 : 2));
      server.push(values);
      ++steps[server.number()];
    }
  });
  EXPECT_LE(oldest, delay);
  EXPECT_GE(calls, enough);
  EXPECT_GT(steps[1], 2 * steps[0]) << "the others go on at their own pace";
}

TEST(parameter_server, the_lead_ends_at_the_slowest_worker_and_a_silent_one_is_passed) {
  constexpr std::size_t count = 10;
  in_process::run(3, [&](comm& c) {
    parameter_server server(c, count, {.bounds = {.lead = 2}, .lease = std::chrono::milliseconds(200)});
    std::vector<float> values(count, 0.0F);
    if (server.serves()) {
      auto const seen = server.serve(values, adds{});
      EXPECT_LE(seen.largest_lead, 2U);
      EXPECT_EQ(seen.workers[0].stale, 1U) << "computed while the other one was far away";
      EXPECT_EQ(seen.workers[1].updates, 30U);
      return;
    }
    std::vector<float> const gradient(count, 1.0F);
    bool const sleeper = server.number() == 0;
    for (int step = 0; step < (sleeper ? 3 : 30); ++step) {
      server.pull(values);
      if (sleeper && step == 1) std::this_thread::sleep_for(std::chrono::seconds(1));
      server.push(gradient);
    }
  });
}

TEST(parameter_server, refuses_what_cannot_be_in_a_sentence) {
  auto const said = [](parameter_server_options const& options) {
    std::string text;
    std::mutex mutex;
    in_process::run(3, [&](comm& c) {
      try {
        parameter_server server(c, 10, options);
        ADD_FAILURE() << "accepted";
      } catch (invalid_argument const& e) {
        std::scoped_lock const lock(mutex);
        text = e.what();
      }
    });
    return text;
  };
  for (auto const& servers : {std::vector<rank_t>{}, {0, 0}, {3}, {-1}, {0, 1, 2}})
    EXPECT_NE(said({.servers = servers}).find("different ranks as servers"), std::string::npos);
  EXPECT_NE(said({.bounds = {.delay = 0}}).find("at least"), std::string::npos);
  EXPECT_NE(said({.lease = std::chrono::milliseconds(0)}).find("longer than any step"), std::string::npos);

  in_process::run(2, [](comm& c) {
    parameter_server server(c, 10);
    std::vector<float> all(10), few(9);
    if (server.serves()) {
      EXPECT_THROW(server.pull(all), invalid_argument);
      EXPECT_THROW(server.push(all), invalid_argument);
      EXPECT_THROW(server.serve(few, adds{}), invalid_argument);
      server.serve(all, adds{});
    } else {
      EXPECT_THROW(server.pull(few), invalid_argument);
      EXPECT_THROW(server.push(few), invalid_argument);
      EXPECT_THROW(server.serve(all, adds{}), invalid_argument);
    }
  });
}

/// What rank `r` holds at place `i` after some steps of its own; eighths, so that sums are exact.
float drifted(rank_t r, std::size_t i) { return static_cast<float>((static_cast<int>(i) * 13 + r * 29) % 64) / 8; }

TEST(local_sgd, averages_when_asked_to) {
  for (int const n : {1, 2, 4}) {
    in_process::run(n, [](comm& c) {
      std::vector<float> x(1001, 2.0F);
      local_sgd replica(c, std::span<float const>(x), averaging);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = drifted(c.rank(), i);
      replica.synchronize(x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        float mean = 0;
        for (rank_t r = 0; r < c.size(); ++r) mean += drifted(r, i) / static_cast<float>(c.size());
        ASSERT_FLOAT_EQ(x[i], mean);
        ASSERT_EQ(x[i], replica.common()[i]);
      }
    });
  }
}

/// Against the recurrence in double.
TEST(local_sgd, moves_as_the_outer_optimiser_says_and_keeps_all_ranks_together) {
  constexpr int n = 3, rounds = 5;
  constexpr std::size_t count = 257;
  std::vector<double> common(count, 1.0), velocity(count, 0.0);
  std::array<std::vector<std::vector<float>>, n> held;
  in_process::run(n, [&](comm& c) {
    std::vector<float> x(count, 1.0F);
    local_sgd replica(c, std::span<float const>(x));
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < count; ++i) x[i] += drifted(c.rank(), i + static_cast<std::size_t>(round)) / 64;
      replica.synchronize(x);
      held[static_cast<std::size_t>(c.rank())].push_back(x);
    }
  });
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) {
      double d = 0;
      for (rank_t r = 0; r < n; ++r) d -= static_cast<double>(drifted(r, i + round)) / 64 / n;
      velocity[i] = 0.9 * velocity[i] + d;
      common[i] -= 0.7 * (d + 0.9 * velocity[i]);
      ASSERT_NEAR(static_cast<double>(held[0][round][i]), common[i], 1e-5);
    }
    for (auto const& other : held) ASSERT_EQ(std::memcmp(other[round].data(), held[0][round].data(), count * 4), 0);
  }
}

TEST(local_sgd, goes_on_while_it_exchanges_and_keeps_a_part_of_that) {
  in_process::run(2, [](comm& c) {
    std::vector<float> x(100, 0.0F);
    local_sgd replica(c, std::span<float const>(x), averaging);
    std::fill(x.begin(), x.end(), c.rank() == 0 ? 2.0F : 4.0F);
    replica.begin(x);
    std::fill(x.begin(), x.end(), 8.0F);
    replica.finish(x, 0.25);
    for (float const value : x) ASSERT_EQ(value, 0.25F * 8 + 0.75F * 3);
    EXPECT_EQ(replica.common()[0], 3.0F);
  });
}

TEST(elastic_averaging, pulls_replicas_and_centre_together_by_equal_and_opposite_steps) {
  constexpr int n = 4;
  constexpr std::size_t count = 123;
  constexpr float pull = 0.25F / 2;
  std::array<std::vector<float>, n> centres;
  in_process::run(n, [&](comm& c) {
    std::vector<float> x(count, 1.0F);
    elastic_averaging spring(c, std::span<float const>(x), pull);
    std::vector<float> centre(count, 1.0F);
    for (int round = 0; round < 3; ++round) {
      std::vector<float> before(count);
      for (std::size_t i = 0; i < count; ++i)
        before[i] = x[i] = drifted(c.rank(), i * 3 + static_cast<std::size_t>(round));
      spring.synchronize(x);
      for (std::size_t i = 0; i < count; ++i) {
        double next = static_cast<double>(centre[i]);
        for (rank_t r = 0; r < n; ++r)
          next += pull * (static_cast<double>(drifted(r, i * 3 + static_cast<std::size_t>(round))) - centre[i]);
        ASSERT_NEAR(x[i], before[i] - pull * (before[i] - centre[i]), 1e-5);
        ASSERT_NEAR(spring.centre()[i], next, 1e-5);
      }
      centre.assign(spring.centre().begin(), spring.centre().end());
    }
    centres[static_cast<std::size_t>(c.rank())] = centre;
    EXPECT_THROW(elastic_averaging(c, std::span<float const>(x), 0.3), invalid_argument);
  });
  for (auto const& other : centres) EXPECT_EQ(std::memcmp(other.data(), centres[0].data(), count * 4), 0);
}

}  // namespace
