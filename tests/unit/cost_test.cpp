#include "schedule_families.hpp"
#include <rondo/schedule/cost.hpp>

#include <bit>
#include <cmath>
#include <gtest/gtest.h>

namespace {

using namespace rondo;

constexpr link_cost wire{.alpha = 2e-6, .beta = 1e-9, .gamma = 3e-10};
constexpr double bytes = 1 << 20;

/// The bytes that a rank cannot but send in a reduce-scatter or an all-gather.
double share(int n) { return bytes * (n - 1) / n; }

TEST(cost, one_rank_costs_nothing) {
  estimate const e = cost(ring::all_reduce{1}, bytes, wire);
  EXPECT_EQ(e.seconds, 0);
  EXPECT_EQ(e.messages, 0);
}

int log2_of(int n) { return std::bit_width(static_cast<unsigned>(n - 1)); }

void expect_near(double measured, double expected, int n) {
  EXPECT_NEAR(measured / expected, 1, 1e-9) << n << " ranks";
}

TEST(cost, ring) {
  for (int const n : {2, 3, 4, 5, 7, 8, 16, 61}) {
    estimate const e = cost(ring::all_reduce{n}, bytes, wire);
    expect_near(e.seconds, 2 * (n - 1) * wire.alpha + 2 * share(n) * wire.beta + share(n) * wire.gamma, n);
    expect_near(e.sent, 2 * share(n), n);
    expect_near(e.folded, share(n), n);
    EXPECT_EQ(e.messages, 2 * (n - 1));
    expect_near(cost(ring::all_gather{n}, bytes, wire).seconds, (n - 1) * wire.alpha + share(n) * wire.beta, n);
  }
}

/// Where n is no power of two the folds of a round are no condition for all that the next one sends.
TEST(cost, recursive_halving_has_the_volume_of_the_ring_in_log_rounds) {
  for (int const n : {2, 3, 4, 5, 7, 8, 12, 16, 61, 1024}) {
    estimate const e = cost(recursive_halving::all_reduce{n}, bytes, wire);
    double const transfer = 2 * log2_of(n) * wire.alpha + 2 * share(n) * wire.beta;
    if (std::has_single_bit(static_cast<unsigned>(n))) expect_near(e.seconds, transfer + share(n) * wire.gamma, n);
    EXPECT_GE(e.seconds, transfer) << n;
    EXPECT_LE(e.seconds, (transfer + share(n) * wire.gamma) * (1 + 1e-9)) << n;
    expect_near(e.sent, 2 * share(n), n);
    EXPECT_EQ(e.messages, 2 * log2_of(n));
  }
}

TEST(cost, recursive_doubling_pays_for_the_whole_buffer_in_every_round) {
  for (int const n : {2, 4, 16, 1024})
    expect_near(cost(recursive_doubling::all_reduce{n}, bytes, wire).seconds,
                log2_of(n) * (wire.alpha + bytes * (wire.beta + wire.gamma)), n);
}

TEST(cost, binomial_broadcast) {
  for (int const n : {2, 3, 8, 100})
    expect_near(cost(binomial::broadcast{n}, bytes, wire).seconds, log2_of(n) * (wire.alpha + bytes * wire.beta), n);
}

/// What arrives queues up at the owner, who takes and folds without a pause: alpha is paid once.
TEST(cost, direct_messages_do_not_wait_for_each_other) {
  for (int const n : {2, 3, 8, 33})
    expect_near(cost(direct::reduce_scatter{n}, bytes, wire).seconds, wire.alpha + share(n) * (wire.beta + wire.gamma),
                n);
}

/// A tree pays for the buffer three times, two trees twice, whatever the number of ranks, if segments overlap.
TEST(cost, trees_are_pipelined) {
  link_cost const bandwidth{.alpha = 0, .beta = 1e-9, .gamma = 0};
  int const segments = 128;
  for (int const n : {8, 21, 64}) {
    double const once = bytes * bandwidth.beta;
    double const one = cost(tree::all_reduce{n}, bytes, bandwidth, segments).seconds / once;
    double const two = cost(double_tree::all_reduce{n}, bytes, bandwidth, segments).seconds / once;
    EXPECT_NEAR(one, 3, 0.35) << n;
    EXPECT_NEAR(two, 2, 0.35) << n;
  }
}

TEST(cost, sixty_five_thousand_ranks) {
  int const n = 65536;
  expect_near(cost(recursive_halving::all_reduce{n}, bytes, wire).seconds,
              2 * 16 * wire.alpha + 2 * share(n) * wire.beta + share(n) * wire.gamma, n);
}

TEST(cost, is_a_constant_expression) {
  static_assert(cost(ring::all_reduce{4}, 1e6, link_cost{1e-6, 1e-9, 0}).messages == 6);
  static_assert(cost(ring::all_reduce{4}, 1e3, link_cost{1e-6, 0, 0}).seconds > 5.9e-6);
}

TEST(cost, a_chain_carries_segments_one_behind_the_other) {
  link_cost const no_fold{wire.alpha, wire.beta, 0};
  for (int const n : {2, 5, 9})
    for (int const segments : {1, 4, 32}) {
      double const hop = wire.alpha + bytes / segments * wire.beta;
      EXPECT_NEAR(cost(ring::broadcast{n}, bytes, no_fold, segments).seconds, (n - 2 + segments) * hop, 1e-12)
          << n << " ranks, " << segments << " segments";
    }
}

TEST(cost, segments_that_do_not_overlap_follow_each_other) {
  double const once = cost(ring::all_reduce{5}, bytes / 4, wire).seconds;
  EXPECT_NEAR(cost(ring::all_reduce{5}, bytes, wire, 4).seconds, 4 * once, 1e-12);
}

TEST(cost, slow_links_between_hosts_hold_up_the_ring) {
  two_level_network const net{.inside = {1e-7, 1e-11, 0}, .between = {5e-6, 1e-9, 0}, .ranks_per_host = 4};
  double const slow = cost(ring::all_reduce{8}, bytes, net.between).seconds;
  double const fast = cost(ring::all_reduce{8}, bytes, net.inside).seconds;
  double const both = cost(ring::all_reduce{8}, bytes, net).seconds;
  EXPECT_LT(fast, both);
  EXPECT_LE(both, slow);
  EXPECT_GT(both, slow / 2);
  two_level_network const one_host{net.inside, net.between, 8};
  EXPECT_DOUBLE_EQ(cost(ring::all_reduce{8}, bytes, one_host).seconds, fast);
}

/// Rank 0 has nothing to receive and could run ahead; rank 1 folds what comes, slowly.
TEST(cost, the_receiver_takes_one_message_after_the_other) {
  struct two_to_one {
    constexpr int ranks() const noexcept { return 3; }
    constexpr int chunks() const noexcept { return 1; }
    constexpr int rounds() const noexcept { return 2; }
    constexpr int period() const noexcept { return 2; }
    constexpr step at(rank_t r, int i) const noexcept {
      if (r == i + 1) return {.to = 0, .out = {0, 1}};
      if (r == 0) return {.from = i + 1, .in = {0, 1}, .how = merge::fold, .completes = i == 1};
      return {};
    }
  };
  // Both start at once; the second waits at the door while the first comes in and is folded.
  EXPECT_DOUBLE_EQ(cost(two_to_one{}, 1e6, wire).seconds, wire.alpha + 2e6 * (wire.beta + wire.gamma));
}

}  // namespace
