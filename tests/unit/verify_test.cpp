#include "schedule_tools.hpp"
#include <rondo/schedule/verify.hpp>

#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace rondo;
using schedule_tools::table;

constexpr slice a{0, 1}, b{1, 1}, both{0, 2};

step sends(rank_t to, slice what) { return {to, what, nobody, {}, merge::overwrite, true, false}; }
step copies(rank_t from, slice what) { return {nobody, {}, from, what, merge::overwrite, true, false}; }
step folds(rank_t from, slice what, bool completes = false) {
  return {nobody, {}, from, what, merge::fold, true, completes};
}

/// Two ranks, two chunks: each folds one and copies the other back.
table pair() {
  return {
      2,
      2,
      {{{1, b, 1, a, merge::fold, true, true}, {0, a, 0, b, merge::fold, true, true}}, {{1, a, 1, b}, {0, b, 0, a}}}};
}

/// Three ranks in a line: everything goes to rank 0 and comes back.
table line() {
  return {3,
          1,
          {{{}, folds(2, a), sends(1, a)},
           {folds(1, a, true), sends(0, a), {}},
           {sends(1, a), copies(0, a), {}},
           {{}, sends(2, a), copies(1, a)}}};
}

void expect_flaw(flaw why, table const& t) {
  verdict const v = verify_all_reduce(t.view());
  EXPECT_EQ(v.why, why) << v.describe();
  EXPECT_FALSE(v.same_bits);
}

TEST(verify, accepts_what_is_right) {
  EXPECT_TRUE(verify_all_reduce(pair().view())) << verify_all_reduce(pair().view()).describe();
  EXPECT_TRUE(verify_all_reduce(line().view()));
  EXPECT_TRUE(verify_all_reduce<proof::checksums>(pair().view()));
  EXPECT_TRUE(verify_all_reduce<proof::checksums>(line().view()));
  EXPECT_TRUE(verify_overlap(pair().view()));
  EXPECT_TRUE(verify_overlap(line().view()));
}

TEST(verify, one_rank_has_nothing_to_do) {
  table const alone(1, 1, {});
  verdict const v = verify_all_reduce(alone.view());
  EXPECT_TRUE(v.why == flaw::none && v.same_bits && v.uniform_tree && v.canonical_tree && v.keeps_rank_order);
  EXPECT_TRUE(verify_broadcast(alone.view(), 0));
  EXPECT_TRUE(verify_barrier(alone.view()));
  EXPECT_TRUE(verify_overlap(alone.view()));
}

TEST(verify, refuses_impossible_shapes) {
  expect_flaw(flaw::bad_shape, table(0, 1, {}));
  expect_flaw(flaw::bad_shape, table(1, 0, {}));
  for (int const period : {0, -1, 3}) {
    table t = pair();
    t.set_period(period);
    expect_flaw(flaw::bad_shape, t);
  }
  EXPECT_EQ(verify_reduce_scatter(table(3, 4, {}).view()).why, flaw::bad_shape) << "4 chunks are not 3 blocks";
  EXPECT_EQ(verify_broadcast(pair().view(), 2).why, flaw::bad_shape);
  EXPECT_EQ(verify_broadcast(pair().view(), -1).why, flaw::bad_shape);
}

TEST(verify, law_1_messages_match) {
  table t = pair();
  t.at(0, 0) = {};
  expect_flaw(flaw::unmatched_send, t);
  t = pair();
  t.at(0, 1).to = nobody;
  expect_flaw(flaw::idle_not_empty, t);
  t.at(0, 1).out = {};
  expect_flaw(flaw::unmatched_receive, t);
  t = pair();
  t.at(1, 0).to = 2;
  expect_flaw(flaw::peer_out_of_range, t);
  t.at(1, 0).to = -2;
  expect_flaw(flaw::peer_out_of_range, t);
  t.at(1, 0).to = 1;
  expect_flaw(flaw::self_message, t);
  t = line();
  t.at(1, 0).from = 0;
  expect_flaw(flaw::unmatched_receive, t);
  t = line();
  t.at(0, 0).completes = true;
  expect_flaw(flaw::idle_not_empty, t);
}

TEST(verify, slices_are_in_range_and_agree) {
  for (slice const bad : {slice{2, 1}, slice{-1, 1}, slice{0, 3}, slice{0, 0}, slice{0, -1}}) {
    table t = pair();
    t.at(0, 0).out = bad;
    expect_flaw(flaw::slice_out_of_range, t);
    t = pair();
    t.at(1, 1).in = bad;
    expect_flaw(flaw::slice_out_of_range, t);
  }
  table t = pair();
  t.at(0, 0).out = both;
  expect_flaw(flaw::slices_overlap, t);
  t.at(0, 0).in = both;
  expect_flaw(flaw::counts_differ, t);
}

TEST(verify, law_2_cyclic_slices) {
  using detail::disjoint;
  EXPECT_TRUE(disjoint({3, 2}, {1, 2}, 5));   // 3 4 | 1 2
  EXPECT_FALSE(disjoint({3, 3}, {0, 1}, 5));  // 3 4 0 | 0
  EXPECT_TRUE(disjoint({3, 3}, {1, 2}, 5));
  EXPECT_FALSE(disjoint({3, 3}, {1, 3}, 5));
  EXPECT_FALSE(disjoint({0, 5}, {2, 1}, 5));
  EXPECT_FALSE(disjoint({2, 1}, {2, 1}, 5));
  EXPECT_TRUE(disjoint({2, 0}, {0, 5}, 5));
}

TEST(verify, equal_slices_exchange_the_values_from_before_the_merge) {
  step const swap0{1, a, 1, a, merge::fold, true, true}, swap1{0, a, 0, a, merge::fold_front, true, true};
  table t(2, 1, {{swap0, swap1}});
  verdict const v = verify_all_reduce(t.view());
  EXPECT_TRUE(v) << v.describe();
  EXPECT_TRUE(v.same_bits && v.uniform_tree && v.canonical_tree && v.keeps_rank_order);
  t.at(1, 0).how = merge::fold;
  EXPECT_TRUE(verify_all_reduce(t.view()).same_bits) << "a + b and b + a are the same bits";
  EXPECT_FALSE(verify_all_reduce(t.view()).keeps_rank_order);
}

TEST(verify, every_contribution_counts_once) {
  table t = line();
  t.insert_round(1);
  t.at(2, 1) = sends(1, a);
  t.at(1, 1) = folds(2, a);
  expect_flaw(flaw::counts_twice, t);
  EXPECT_FALSE(verify_all_reduce<proof::checksums>(t.view()));
  t = line();
  t.at(1, 0).how = merge::overwrite;
  EXPECT_FALSE(verify_all_reduce(t.view()));
  t = line();
  t.at(2, 3) = t.at(1, 3) = {};
  verdict const v = verify_all_reduce(t.view());
  EXPECT_EQ(v.why, flaw::incomplete);
  EXPECT_EQ(v.rank, 2);
}

TEST(verify, chunks_are_not_mixed_up) {
  table t = pair();
  std::swap(t.at(0, 1).in, t.at(0, 1).out);
  EXPECT_FALSE(verify_all_reduce(t.view()));
  t = table(2, 2, {{sends(1, a), folds(0, b)}});
  expect_flaw(flaw::mixes_chunks, t);
  t = table(2, 2, {{sends(1, both), copies(0, {1, 2})}});
  EXPECT_EQ(verify_broadcast(t.view(), 0).why, flaw::incomplete) << "both arrive, but exchanged";
}

/// Rank 0 sends to 1, which passes it on to 2 without keeping it, then gets it back.
table relay() {
  return {3,
          1,
          {{sends(1, a), {nobody, {}, 0, a, merge::overwrite, false, false}, {}},
           {{}, sends(2, a), copies(1, a)},
           {{}, copies(2, a), sends(1, a)}}};
}

TEST(verify, law_4_what_is_not_kept_is_forwarded_at_once) {
  EXPECT_TRUE(verify_broadcast(relay().view(), 0));
  table t = relay();
  t.at(1, 2) = t.at(2, 2) = {};
  EXPECT_EQ(verify_broadcast(t.view(), 0).why, flaw::incomplete) << "its place was free";
  t = relay();
  t.insert_round(1);
  EXPECT_EQ(verify_broadcast(t.view(), 0).why, flaw::not_forwarded);
  t = relay();
  t.at(1, 2).keep = false;
  EXPECT_EQ(verify_broadcast(t.view(), 0).why, flaw::not_forwarded) << "there is no next round";
  t = relay();
  t.insert_round(2);
  t.at(1, 2) = sends(2, a);
  t.at(2, 2) = copies(1, a);
  EXPECT_EQ(verify_broadcast(t.view(), 0).why, flaw::reads_nothing);
  EXPECT_EQ(verify_broadcast<proof::checksums>(t.view(), 0).why, flaw::reads_nothing);
  EXPECT_EQ(verify_broadcast(relay().view(), 2).why, flaw::reads_nothing) << "rank 0 has nothing to send";
}

TEST(verify, law_5_completes) {
  table t = pair();
  t.at(0, 0).completes = false;
  expect_flaw(flaw::completes_wrongly, t);
  t = pair();
  t.at(0, 1).completes = true;
  expect_flaw(flaw::completes_wrongly, t);
  t = line();
  t.at(1, 0).completes = true;
  expect_flaw(flaw::completes_wrongly, t);
  EXPECT_EQ(verify_all_reduce<proof::checksums>(t.view()).why, flaw::completes_wrongly);
}

TEST(verify, tree_facts) {
  verdict const v = verify_all_reduce(line().view());  // 0 + (1 + 2)
  EXPECT_TRUE(v.same_bits && v.uniform_tree && v.keeps_rank_order);
  EXPECT_FALSE(v.canonical_tree);  // (0 + 1) + 2
  table t = line();
  t.at(0, 1).how = merge::fold_front;  // (1 + 2) + 0
  EXPECT_FALSE(verify_all_reduce(t.view()).keeps_rank_order);

  t = table(3, 1, {{folds(1, a), sends(0, a), {}}, {folds(2, a, true), {}, sends(0, a)}});
  EXPECT_TRUE(verify_reduce(t.view(), 0).canonical_tree);
  EXPECT_TRUE(verify_reduce(t.view(), 0).keeps_rank_order);

  // The two chunks of three ranks are summed in two orders: (0 + 1) + 2 and (0 + 2) + 1.
  t = table(3, 2,
            {{folds(1, a), sends(0, a), {}},
             {folds(2, a, true), {}, sends(0, a)},
             {folds(2, b), {}, sends(0, b)},
             {folds(1, b, true), sends(0, b), {}}});
  verdict const mixed = verify_reduce(t.view(), 0);
  EXPECT_TRUE(mixed && mixed.same_bits);
  EXPECT_FALSE(mixed.uniform_tree || mixed.canonical_tree || mixed.keeps_rank_order);
  EXPECT_FALSE(verify_reduce<proof::checksums>(t.view(), 0).same_bits) << "checksums know no trees";
}

/// Every rank folds what its neighbour, then what the one two places before it, has: right sums, not the same bits.
TEST(verify, rotated_windows_do_not_give_the_same_bits) {
  std::vector<std::vector<step>> rounds(2, std::vector<step>(4));
  for (rank_t r = 0; r < 4; ++r) {
    auto const at = static_cast<std::size_t>(r);
    rounds[0][at] = {(r + 1) % 4, a, (r + 3) % 4, a, merge::fold, true, false};
    rounds[1][at] = {(r + 2) % 4, a, (r + 2) % 4, a, merge::fold, true, true};
  }
  verdict const v = verify_all_reduce(table(4, 1, rounds).view());
  EXPECT_TRUE(v) << v.describe();
  EXPECT_FALSE(v.same_bits || v.uniform_tree || v.canonical_tree || v.keeps_rank_order);
}

TEST(verify, blocks) {
  step const cross0{1, b, 1, a, merge::fold, true, true}, cross1{0, a, 0, b, merge::fold, true, true};
  EXPECT_TRUE(verify_reduce_scatter(table(2, 2, {{cross0, cross1}}).view()));
  table const swap(2, 2, {{{1, a, 1, b}, {0, b, 0, a}}});
  EXPECT_TRUE(verify_all_gather(swap.view()));
  EXPECT_TRUE(verify_gather(table(2, 2, {{copies(1, b), sends(0, b)}}).view(), 0));
  EXPECT_FALSE(verify_gather(table(2, 2, {{copies(1, b), sends(0, b)}}).view(), 1));
  EXPECT_TRUE(verify_scatter(table(2, 2, {{sends(1, b), copies(0, b)}}).view(), 0));
  EXPECT_FALSE(verify_scatter(table(2, 2, {{sends(1, a), copies(0, a)}}).view(), 0));
}

TEST(verify, all_to_all_has_a_half_to_send_and_a_half_to_receive) {
  table t(2, 4, {{{1, {1, 1}, 1, {3, 1}}, {0, {0, 1}, 0, {2, 1}}}});
  EXPECT_TRUE(verify_all_to_all(t.view())) << verify_all_to_all(t.view()).describe();
  t.at(0, 0).in = {2, 1};
  EXPECT_EQ(verify_all_to_all(t.view()).why, flaw::incomplete) << "that is the place for its own block";
  t.at(0, 0).in = {1, 1};
  EXPECT_EQ(verify_all_to_all(t.view()).why, flaw::incomplete) << "what is to be sent stays as it was";
  table const wide(2, 8, {{{1, {2, 2}, 1, {6, 2}}, {0, {0, 2}, 0, {4, 2}}}});
  EXPECT_TRUE(verify_all_to_all(wide.view())) << verify_all_to_all(wide.view()).describe();
  EXPECT_EQ(verify_all_to_all(table(2, 6, {}).view()).why, flaw::bad_shape);
}

TEST(verify, barrier) {
  slice const none{};
  table t(3, 0,
          {{{1, none, 2, none}, {2, none, 0, none}, {0, none, 1, none}},
           {{2, none, 1, none}, {0, none, 2, none}, {1, none, 0, none}}});
  EXPECT_TRUE(verify_barrier(t.view()));
  EXPECT_TRUE(verify_overlap(t.view()));
  t.at(0, 1).to = nobody;
  EXPECT_EQ(verify_barrier(t.view()).why, flaw::unmatched_receive);
  t.at(2, 1).from = 0;
  t.at(0, 1).to = 2;
  EXPECT_TRUE(verify_barrier(t.view()));
  t = table(3, 0, {{{1, none, 2, none}, {2, none, 0, none}, {0, none, 1, none}}});
  EXPECT_EQ(verify_barrier(t.view()).why, flaw::incomplete);
}

TEST(verify, law_3_needs_law_1) {
  // Rank 0 believes that it receives in round 0, rank 1 that it sends in round 1.
  table t(2, 1, {{copies(1, a), {}}, {{}, sends(0, a)}});
  EXPECT_EQ(verify_overlap(t.view(), 1).why, flaw::out_of_order);
  t = table(2, 1, {{copies(1, a), copies(0, a)}});
  EXPECT_EQ(verify_overlap(t.view(), 1).why, flaw::deadlock);
  t = line();
  for (int period = 1; period <= 4; ++period) {
    t.set_period(period);
    EXPECT_TRUE(verify_overlap(t.view(), 5)) << period;
  }
}

TEST(verify, describes_what_is_wrong_and_where) {
  table t = line();
  t.at(1, 0).completes = true;
  EXPECT_EQ(verify_all_reduce(t.view()).describe(),
            "rank 1, round 0, chunk 0: `completes` does not say whether this merge makes the slice final");
  EXPECT_EQ(verify_all_reduce(line().view()).describe(), "correct");
  EXPECT_EQ(verify_broadcast(line().view(), 7).describe(),
            "ranks(), chunks(), rounds() or period() is out of range for this collective");
}

}  // namespace
