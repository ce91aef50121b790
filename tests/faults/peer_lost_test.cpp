#include "calls.hpp"

#include <filesystem>
#include <functional>
#include <regex>
#include <set>
#include <tuple>

namespace {

using namespace faults_test;
using namespace std::chrono_literals;

constexpr std::size_t large = 1U << 20U;  // elements: more than any stream holds

/// What a rank does when the victim is killed, or after the victim has left. Ends only by throwing.
struct occupation {
  std::string name;
  std::function<void(comm&, seat&, rank_t victim)> others;
  bool with_victim = false;  ///< the victim does the same
};

void PrintTo(occupation const& o, std::ostream* out) { *out << o.name; }

template <class Call>
void for_ever(seat& s, Call&& call) {
  for (;;) {
    call();
    ++s.progress;
  }
}

std::vector<occupation> const& occupations() {
  using enum collective;
  static std::vector<occupation> const all{
      {"small_all_reduces", [](comm& c, seat& s, rank_t) { for_ever(s, [&] { make(c, {}); }); }, true},
      {"large_all_reduces", [](comm& c, seat& s, rank_t) { for_ever(s, [&] { make(c, {.count = large}); }); }, true},
      {"large_broadcasts",
       [](comm& c, seat& s, rank_t victim) {
         for_ever(s, [&] { make(c, {.what = broadcast, .count = large, .root = victim}); });
       },
       true},
      {"barrier",
       [](comm& c, seat& s, rank_t) {
         ++s.progress;
         make(c, {.what = barrier});
       }},
      {"asynchronous_all_reduce",
       [](comm& c, seat& s, rank_t) {
         ++s.progress;
         make(c, {.count = large, .starts = true});
       }},
      {"receive",
       [](comm& c, seat& s, rank_t victim) {
         ++s.progress;
         make(c, {.what = send_receive, .sender = victim, .starts = c.rank() % 2 == 0});
       }},
      {"send",
       [](comm& c, seat& s, rank_t victim) {
         ++s.progress;
         make(c, {.what = send_receive, .count = 4 * large, .to = victim, .starts = c.rank() % 2 == 0});
       }},
  };
  return all;
}

/// What lies in the folders where things could be left behind.
std::set<std::string> litter() {
  std::set<std::string> found;
  for (auto const* const folder : {"/dev/shm", "/tmp"})
    for (auto const& entry : std::filesystem::directory_iterator(folder)) found.insert(entry.path());
  return found;
}

/// What has come since `before` and names rondo or one of these processes. Other programs litter, too.
std::set<std::string> leftovers(std::set<std::string> const& before, std::vector<pid_t> const& pids) {
  std::string names = "rondo";
  for (pid_t const pid : pids) names += "|(^|[^0-9])" + std::to_string(pid) + "([^0-9]|$)";
  std::regex const ours(names);
  auto found = litter();
  std::erase_if(found,
                [&](std::string const& name) { return before.contains(name) || !std::regex_search(name, ours); });
  return found;
}

std::string name_of_case(testing::TestParamInfo<std::tuple<occupation, medium>> const& info) {
  return std::get<0>(info.param).name + "_" + name_of(std::get<1>(info.param));
}

class killed : public bounded<std::tuple<occupation, medium>> {};

TEST_P(killed, is_named_within_a_second_and_leaves_nothing) {
  auto const& [busy, m] = GetParam();
  constexpr int n = 4;
  for (int repeat = 0; repeat < 10 && !HasFailure(); ++repeat) {
    rank_t const victim = repeat % n;
    SCOPED_TRACE("rank " + std::to_string(victim) + " is killed");
    auto const before = litter();
    team ranks(m, n, [&busy = busy, victim](comm& c, seat& s) {
      if (c.rank() != victim || busy.with_victim) return busy.others(c, s, victim);
      ++s.progress;
      std::this_thread::sleep_for(30s);
    });
    std::vector<pid_t> pids;
    for (rank_t r = 0; r < n; ++r) pids.push_back(ranks.pid(r));
    ranks.await_progress(busy.with_victim ? 2 : 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(repeat * 3));
    auto const death = ranks.signal(victim, SIGKILL);
    ranks.wait();
    ranks.expect_all(ending::peer_lost, {victim});
    ranks.expect_named(victim);
    for (rank_t r = 0; r < n; ++r) {
      if (r == victim) continue;
      EXPECT_NE(ranks[r].text().find("rank " + std::to_string(victim) + " "), std::string::npos) << ranks[r].text();
      EXPECT_LT(seconds(ranks[r].when - death), 1.0) << "rank " << r;
    }
    EXPECT_EQ(leftovers(before, pids), std::set<std::string>{});
  }
}

INSTANTIATE_TEST_SUITE_P(rank, killed,
                         testing::Combine(testing::ValuesIn(occupations()), testing::ValuesIn(process_media)),
                         name_of_case);

class departed : public bounded<std::tuple<occupation, medium>> {};

TEST_P(departed, is_named_by_those_who_still_need_it) {
  auto const& [busy, m] = GetParam();
  constexpr int n = 4;
  for (rank_t const victim : {2, 0}) {
    SCOPED_TRACE("rank " + std::to_string(victim) + " leaves");
    team ranks(m, n,
               [&busy = busy, victim](comm& c, seat& s) {
                 for (int i = 0; i < 3; ++i) make(c, {});
                 if (c.rank() != victim) busy.others(c, s, victim);
               },
               {.deadline = 20s});
    ranks.wait();
    EXPECT_EQ(ranks[victim].how, ending::done) << ranks[victim].text();
    for (rank_t r = 0; r < n; ++r) {
      if (r == victim) continue;
      EXPECT_EQ(ranks[r].how, ending::peer_lost) << ranks[r].text();
      EXPECT_LT(seconds(ranks[r].when - ranks[victim].when), 2.0) << "rank " << r;
    }
    ranks.expect_named(victim);
    // Rank 0 of a job of processes takes the control plane along. Then all learn by themselves that it is gone, some
    // from its farewell and some from its connections.
    if (victim == 0 && m != medium::in_process) continue;
    ranks.expect_all(ending::peer_lost, {victim});
    EXPECT_NE(ranks[1].text().find("rank " + std::to_string(victim) + " has left"), std::string::npos)
        << ranks[1].text();
  }
}

INSTANTIATE_TEST_SUITE_P(rank, departed, testing::Combine(testing::ValuesIn(occupations()), testing::ValuesIn(media)),
                         name_of_case);

/// Two pairs of ranks, each with a communicator of its own; a rank dies.
class part : public bounded<std::tuple<rank_t, medium>> {};

TEST_P(part, fails_with_its_member_only) {
  auto const [victim, m] = GetParam();
  team ranks(m, 4, [victim = victim](comm& c, seat& s) {
    auto pair = *c.split(c.rank() / 2, c.rank());
    ++s.progress;
    if (c.rank() == victim) std::this_thread::sleep_for(30s);
    if (c.rank() / 2 == victim / 2) {
      try {
        for_ever(s, [&] { make(pair, {}); });
      } catch (peer_lost const& e) {
        demand(e.rank() == victim % 2, std::string("the wrong member is named: ") + e.what());
      }
    } else {
      for (int i = 0; i < 100; ++i) {
        make(pair, {.count = 1000});
        std::this_thread::sleep_for(5ms);
      }
      make(pair, {.count = large});
      make(pair, {.what = collective::barrier});
    }
    make(c, {.what = collective::barrier});
  });
  ranks.await_progress(1);
  ranks.signal(victim, SIGKILL);
  ranks.wait();
  ranks.expect_all(ending::peer_lost, {victim});
  ranks.expect_named(victim);
}

INSTANTIATE_TEST_SUITE_P(of_a_job, part, testing::Combine(testing::Values(3, 1, 0), testing::ValuesIn(process_media)),
                         [](auto const& info) {
                           return "without_rank_" + std::to_string(std::get<0>(info.param)) + "_" +
                                  name_of(std::get<1>(info.param));
                         });

}  // namespace
