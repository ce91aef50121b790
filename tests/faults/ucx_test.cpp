#include "../multi/bootstrap_job.hpp"
#include "calls.hpp"
#include <rondo/transports/ucx.hpp>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <sys/mman.h>

namespace {

using namespace faults_test;
using namespace std::chrono_literals;

any_transport over_ucx(std::shared_ptr<group> const& g) { return ucx::connect(g); }

class killed_over_ucx : public bounded<> {};

TEST_F(killed_over_ucx, is_named_by_all_others) {
  constexpr int n = 4;
  for (int repeat = 0; repeat < 5 && !HasFailure(); ++repeat) {
    rank_t const victim = repeat % n;
    SCOPED_TRACE("rank " + std::to_string(victim) + " is killed");
    team ranks(over_ucx, n, [](comm& c, seat& s) {
      for (;; ++s.progress) make(c, {.count = 1U << 18U});
    });
    ranks.await_progress(2);
    std::this_thread::sleep_for(std::chrono::milliseconds(repeat * 3));
    auto const death = ranks.signal(victim, SIGKILL);
    ranks.wait();
    ranks.expect_all(ending::peer_lost, {victim});
    ranks.expect_named(victim);
    for (rank_t r = 0; r < n; ++r) EXPECT_TRUE(r == victim || seconds(ranks[r].when - death) < 3) << "rank " << r;
  }
}

/// Nothing but UCX tells here: the group is not asked.
TEST_F(killed_over_ucx, is_noticed_by_the_transport_alone) {
  void* const shared =
      ::mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  for (bool const writing : {false, true}) {
    auto& connected = *new (shared) std::atomic<int>(0);
    bootstrap_test::job job(3);
    std::vector<bootstrap_test::process> ranks;
    for (rank_t r = 0; r < 3; ++r)
      ranks.emplace_back([&job, &connected, r, writing] {
        auto const g = job.join(r);
        auto x = ucx::connect(g);
        ++connected;
        while (connected < 4) x.wait(1ms);
        if (r == 2) std::this_thread::sleep_for(60s);
        std::array<std::byte, 1000> bytes{};
        for (auto const end = clock::now() + 3s; clock::now() < end; x.wait(50ms)) try {
            if (writing)
              while (x.write(2, bytes, false) > 0) {}
            else
              x.read(2, bytes);
          } catch (peer_lost const& e) { return e.rank() == 2 ? 0 : 1; }
        return 2;
      });
    while (connected < 3) std::this_thread::sleep_for(1ms);
    ranks[2].send(SIGKILL);
    ++connected;
    EXPECT_EQ(ranks[0].wait(), 0) << writing;
    EXPECT_EQ(ranks[1].wait(), 0) << writing;
  }
  ::munmap(shared, sizeof(std::atomic<int>));
}

class left_over_ucx : public bounded<> {};

TEST_F(left_over_ucx, is_named_by_those_who_still_need_it) {
  team ranks(over_ucx, 3, [](comm& c, seat&) {
    for (int i = 0; i < 3; ++i) make(c, {});
    if (c.rank() != 2)
      for (;;) make(c, {});
  });
  ranks.wait();
  EXPECT_EQ(ranks[2].how, ending::done) << ranks[2].text();
  ranks.expect_all(ending::peer_lost, {2});
  ranks.expect_named(2);
}

class disagreeing_over_ucx : public bounded<> {};

TEST_F(disagreeing_over_ucx, is_refused_with_both_settings) {
  team ranks(
      [](std::shared_ptr<group> const& g) {
        if (g->rank() == 1) ::setenv("UCX_TCP_TX_SEG_SIZE", "16k", 1);
        return over_ucx(g);
      },
      3, [](comm&, seat&) {});
  ranks.wait();
  for (rank_t r = 0; r < 3; ++r) {
    EXPECT_EQ(ranks[r].how, ending::other);
    EXPECT_EQ(ranks[r].named, 1);
    EXPECT_NE(ranks[r].text().find("rank 1 has UCX_TCP_TX_SEG_SIZE=16k, but rank 0 has no UCX_TCP_TX_SEG_SIZE"),
              std::string::npos)
        << ranks[r].text();
  }
}

}  // namespace
