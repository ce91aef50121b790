#include "calls.hpp"

#include <algorithm>
#include <tuple>

namespace {

using namespace faults_test;
using namespace std::chrono_literals;

constexpr std::size_t large = 1U << 20U;

std::string text_of(call const& c) {
  return std::string(to_string(c.what)) + (c.count == large ? "_large" : "") + (c.starts ? "_asynchronous" : "");
}

std::vector<call> const& calls() {
  using enum collective;
  static std::vector<call> const all{
      {}, {.count = large}, {.starts = true}, {.what = barrier}, {.what = all_to_all, .count = 1000},
  };
  return all;
}

/// The time from when all but `one` have begun to when they have ended.
struct span_of_time {
  clock::duration shortest, longest;
};
span_of_time since(team const& ranks, clock::time_point begin, rank_t one) {
  span_of_time found{clock::duration::max(), clock::duration::min()};
  for (rank_t r = 0; r < ranks.size(); ++r) {
    if (r == one) continue;
    found.shortest = std::min(found.shortest, ranks[r].when - begin);
    found.longest = std::max(found.longest, ranks[r].when - begin);
  }
  return found;
}

class absent : public bounded<std::tuple<std::size_t, medium>> {};

TEST_P(absent, is_named_at_the_deadline) {
  auto const& what = calls()[std::get<0>(GetParam())];
  constexpr rank_t late = 1;
  team ranks(std::get<1>(GetParam()), 3, [&](comm& c, seat& s) {
    make(c, {.what = collective::barrier});
    auto mine = what;
    mine.options.deadline = 300ms;
    if (c.rank() == late) std::this_thread::sleep_for(800ms);
    ++s.progress;
    make(c, mine);
  });
  ranks.wait();
  ranks.expect_all(ending::deadline);
  ranks.expect_named(late);
  auto const took = since(ranks, ranks[late].when - 800ms, late);  // it hears of it as soon as it calls
  EXPECT_GT(seconds(took.shortest), 0.2);
  EXPECT_LT(seconds(took.longest), 1.3);
}

INSTANTIATE_TEST_SUITE_P(rank, absent,
                         testing::Combine(testing::Range(std::size_t{0}, calls().size()), testing::ValuesIn(media)),
                         [](auto const& info) {
                           return text_of(calls()[std::get<0>(info.param)]) + "_" + name_of(std::get<1>(info.param));
                         });

class stopped : public bounded<std::tuple<rank_t, std::size_t, medium>> {};

void all_reduces(comm& c, seat& s, std::size_t count, clock::duration how_long) {
  make(c, {.what = collective::barrier});
  // Every rank stops after the same call: rank 0 says when.
  for (auto const until = clock::now() + how_long;;) {
    make(c, {.count = count});
    std::vector<int> on{clock::now() < until};
    c.broadcast<binomial>(on, 0);
    ++s.progress;
    if (!on[0]) return;
  }
}

TEST_P(stopped, is_named_at_the_deadline) {
  auto const [victim, count, m] = GetParam();
  team ranks(m, 3, [count = count](comm& c, seat& s) { all_reduces(c, s, count, 30s); }, {.deadline = 500ms});
  ranks.await_progress(2);
  auto const stop = ranks.signal(victim, SIGSTOP);
  std::this_thread::sleep_for(1700ms);
  ranks.signal(victim, SIGCONT);
  ranks.wait();
  ranks.expect_all(ending::deadline, {victim});
  ranks.expect_named(victim);
  EXPECT_NE(ranks[victim].how, ending::done);
  EXPECT_NE(ranks[victim].how, ending::other) << ranks[victim].text();
  auto const took = since(ranks, stop, victim);
  EXPECT_GT(seconds(took.shortest), 0.4);
  EXPECT_LT(seconds(took.longest), 1.5);
}

TEST_P(stopped, and_continued_soon_does_no_harm) {
  auto const [victim, count, m] = GetParam();
  team ranks(m, 3, [count = count](comm& c, seat& s) { all_reduces(c, s, count, 600ms); }, {.deadline = 10s});
  ranks.await_progress(1);
  ranks.signal(victim, SIGSTOP);
  std::this_thread::sleep_for(500ms);
  ranks.signal(victim, SIGCONT);
  ranks.wait();
  ranks.expect_all(ending::done);
}

INSTANTIATE_TEST_SUITE_P(rank, stopped,
                         testing::Combine(testing::Values(0, 1), testing::Values(std::size_t{2}, large),
                                          testing::ValuesIn(process_media)),
                         [](auto const& info) {
                           return std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) == large ? "_large_" : "_small_") +
                                  name_of(std::get<2>(info.param));
                         });

class on_medium : public bounded<medium> {};

TEST_P(on_medium, large_sends_to_each_other_end_at_the_deadline) {
  team ranks(GetParam(), 2, [](comm& c, seat&) {
    make(c,
         {.what = collective::send_receive, .count = 16 * large, .options = {.deadline = 500ms}, .to = 1 - c.rank()});
  });
  ranks.wait();
  ranks.expect_all(ending::deadline);
}

TEST_P(on_medium, dropping_a_pending_call_takes_no_longer_than_its_deadline) {
  team ranks(GetParam(), 2, [](comm& c, seat&) {
    make(c, {.what = collective::barrier});
    if (c.rank() == 1) return std::this_thread::sleep_for(1500ms);
    std::vector<float> data(large);
    auto const start = clock::now();
    { auto const dropped = c.start_all_reduce<ring>(data, sum, {.deadline = 500ms}); }
    double const took = seconds(clock::now() - start);
    demand(took > 0.4 && took < 1.5, "dropping took " + std::to_string(took) + " s");
    make(c, {});
  });
  ranks.wait();
  EXPECT_EQ(ranks[0].how, ending::deadline) << ranks[0].text();
  EXPECT_EQ(ranks[0].named, 1) << ranks[0].text();
}

INSTANTIATE_TEST_SUITE_P(deadline, on_medium, testing::ValuesIn(media),
                         [](auto const& info) { return name_of(info.param); });

}  // namespace
