#include "processes.hpp"
#include <rondo/fused/sgd.hpp>
#include <rondo/fused/sync_and_step.hpp>

#include <chrono>
#include <csignal>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace faults_test;

class killed_in_a_step : public bounded<medium> {};

/// Also while others read from its buffers and store to them.
TEST_P(killed_in_a_step, is_named_within_a_second) {
  for (int repeat = 0; repeat < 6 && !HasFailure(); ++repeat) {
    rank_t const victim = repeat % 3;
    SCOPED_TRACE("rank " + std::to_string(victim) + " is killed");
    team ranks(GetParam(), 3, [repeat](comm& c, seat& s) {
      std::size_t const n = 300'000;
      auto gradients = c.allocate<bfloat16>(repeat % 2 == 0 ? n : 0), weights = c.allocate<bfloat16>(gradients.size());
      std::vector<bfloat16> plain(n - gradients.size()), plain_weights(plain.size());
      std::span<bfloat16> const g = plain.empty() ? std::span<bfloat16>(gradients) : std::span<bfloat16>(plain);
      std::span<bfloat16> const w = plain.empty() ? std::span<bfloat16>(weights) : std::span<bfloat16>(plain_weights);
      sharded_state state(std::span<bfloat16 const>(w), c.rank(), c.size(), sgd{});
      for (;; ++s.progress) sync_and_step(c, g, w, state, {.max_norm = 1.0});
    });
    ranks.await_progress(2);
    std::this_thread::sleep_for(std::chrono::milliseconds(repeat * 3));
    auto const death = ranks.signal(victim, SIGKILL);
    ranks.wait();
    ranks.expect_all(ending::peer_lost, {victim});
    ranks.expect_named(victim);
    for (rank_t r = 0; r < 3; ++r) {
      if (r == victim) continue;
      EXPECT_LT(seconds(ranks[r].when - death), 1.0) << "rank " << r;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(rank, killed_in_a_step, testing::Values(medium::shm, medium::tcp),
                         [](auto const& info) { return name_of(info.param); });

}  // namespace
