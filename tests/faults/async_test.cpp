#include "processes.hpp"
#include <rondo/async/parameter_server.hpp>

#include <array>
#include <gtest/gtest.h>
#include <tuple>
#include <vector>

namespace {

using namespace faults_test;
using namespace std::chrono_literals;

constexpr std::size_t parameters = 100'003;

struct ones {
  void operator()(std::span<float> values, std::span<float const> gradient) const noexcept {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += gradient[i];
  }
};

/// Two servers, ranks 1 and 2, and three workers.
parameter_server<any_transport> serve_among(comm& c, staleness_bounds bounds) {
  return {c, parameters, {.servers = {1, 2}, .bounds = bounds, .lease = 1s}};
}

void train(parameter_server<any_transport>& server, seat& s, int steps) {
  std::vector<float> values(parameters);
  std::vector<float> const gradient(parameters, 1.0F);
  for (int i = 0; i < steps; ++i) {
    server.pull(values);
    demand(values.front() >= static_cast<float>(i), "a pull has not seen this worker's own pushes");
    server.push(gradient);
    ++s.progress;
  }
}

std::string name_of_case(testing::TestParamInfo<std::tuple<rank_t, medium>> const& info) {
  return "rank_" + std::to_string(std::get<0>(info.param)) + "_" + name_of(std::get<1>(info.param));
}

class worker : public bounded<std::tuple<rank_t, medium>> {};

/// The servers count what the dead worker has done; the others make all of their steps, also where the bounds would
/// have them wait for it.
TEST_P(worker, that_is_killed_does_not_stop_the_rest) {
  auto const [victim, m] = GetParam();
  team ranks(m, 5, [victim = victim](comm& c, seat& s) {
    auto server = serve_among(c, {.lead = 4, .delay = 6});
    if (!server.serves()) return train(server, s, c.rank() == victim ? 1'000'000 : 100);
    s.progress = 1'000'000;
    std::vector<float> values(server.count(), 0.0F);
    auto const seen = server.serve(values, ones{});
    std::size_t const dead = victim == 0 ? 0 : static_cast<std::size_t>(victim) - 2;
    for (std::size_t w = 0; w < 3; ++w) {
      demand((seen.workers[w].how == worker_ending::lost) == (w == dead),
             "worker " + std::to_string(w) + ": " + seen.workers[w].why);
      demand(w == dead || seen.workers[w].updates == 100, "steps are missing");
    }
    demand(seen.largest_lead <= 4 && seen.largest_delay <= 6, "a bound was exceeded");
    demand(values.front() == static_cast<float>(seen.updates) && values.back() == values.front(),
           "updates are missing");
  });
  ranks.await_progress(20);
  ranks.signal(victim, SIGKILL);
  ranks.wait();
  for (rank_t r = 0; r < 5; ++r)
    if (r != victim) { EXPECT_EQ(ranks[r].how, ending::done) << "rank " << r << ": " << ranks[r].text(); }
}

INSTANTIATE_TEST_SUITE_P(of_three, worker,
                         testing::Values(std::tuple(3, medium::shm), std::tuple(3, medium::tcp),
                                         std::tuple(0, medium::shm), std::tuple(0, medium::multi)),
                         name_of_case);

/// A worker that is stopped is waited for no longer than its lease, and comes back.
class sleeper : public bounded<std::tuple<rank_t, medium>> {};

TEST_P(sleeper, is_passed_and_comes_back) {
  auto const [victim, m] = GetParam();
  team ranks(m, 5, [victim = victim](comm& c, seat& s) {
    auto server = serve_among(c, {.lead = 4});
    if (!server.serves()) return train(server, s, c.rank() == victim ? 60 : 300);
    s.progress = 1'000'000;
    std::vector<float> values(server.count(), 0.0F);
    auto const seen = server.serve(values, ones{});
    auto const& slow = seen.workers[static_cast<std::size_t>(victim) - 2];
    demand(slow.how == worker_ending::left, slow.why);
    demand(slow.updates + slow.stale == 60 && slow.stale <= 1, "the stopped worker's steps are missing");
    demand(seen.largest_lead <= 4, "a bound was exceeded");
  });
  ranks.await_progress(20);
  ranks.signal(victim, SIGSTOP);
  ranks.await_progress(20);
  for (auto const until = clock::now() + 20s; clock::now() < until && !(ranks[0].ended && ranks[4].ended);)
    std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(ranks[0].ended && ranks[4].ended) << "the others still wait for it";
  ranks.signal(victim, SIGCONT);
  ranks.wait();
  for (rank_t r = 0; r < 5; ++r) EXPECT_EQ(ranks[r].how, ending::done) << "rank " << r << ": " << ranks[r].text();
}

INSTANTIATE_TEST_SUITE_P(of_three, sleeper, testing::Combine(testing::Values(3), testing::Values(medium::shm)),
                         name_of_case);

/// Without one of its shards nobody can go on, and everybody says so.
class server : public bounded<std::tuple<rank_t, medium>> {};

TEST_P(server, that_is_killed_ends_its_workers) {
  auto const [victim, m] = GetParam();
  team ranks(m, 5, [](comm& c, seat& s) {
    auto server = serve_among(c, {});
    if (!server.serves()) return train(server, s, 1'000'000);
    s.progress = 1'000'000;
    std::vector<float> values(server.count(), 0.0F);
    server.serve(values, ones{});
  });
  ranks.await_progress(20);
  ranks.signal(victim, SIGKILL);
  ranks.wait();
  for (rank_t const r : {0, 3, 4}) EXPECT_EQ(ranks[r].how, ending::peer_lost) << ranks[r].text();
  EXPECT_EQ(ranks[victim == 1 ? 2 : 1].how, ending::done) << "the other server sees its workers leave";
}

INSTANTIATE_TEST_SUITE_P(of_two, server,
                         testing::Combine(testing::Values(1), testing::Values(medium::shm, medium::tcp)), name_of_case);

}  // namespace
