#include <rondo/pipeline/one_f_one_b.hpp>

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

namespace {

using namespace rondo;

static_assert(one_f_one_b{4, 8}.at(3, 1) == pipeline_step{pass::backward, 0});
static_assert(one_f_one_b{4, 8}.at(0, 3) == pipeline_step{pass::forward, 3});

/// What the schedule must do, found by running it: every stage takes its steps in order, each as soon as what it needs
/// from a neighbour has been made. Returns when the last step ends; 0 if the stages wait for each other for ever.
///
/// `slots`: finished messages that wait for a neighbour to begin the pass that they are for; a stage does not begin a
/// pass while its last message in that direction has no slot.
int makespan(one_f_one_b const& s, int forward, int backward, int slots) {
  auto const p = static_cast<std::size_t>(s.stages), m = static_cast<std::size_t>(s.microbatches);
  std::vector<std::vector<int>> began[2], ended[2];
  for (int way = 0; way < 2; ++way) began[way] = ended[way] = {p, std::vector<int>(m, -1)};
  std::vector<int> next(p, 0), free_at(p, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t stage = 0; stage < p; ++stage) {
      if (next[stage] == s.steps()) continue;
      auto const [what, number] = s.at(static_cast<int>(stage), next[stage]);
      bool const on = what == pass::forward;
      auto const way = static_cast<std::size_t>(on ? 0 : 1), k = static_cast<std::size_t>(number);
      int start = free_at[stage];
      bool const first = on ? stage == 0 : stage == p - 1, last = on ? stage == p - 1 : stage == 0;
      if (!first) {
        int const given = ended[way][on ? stage - 1 : stage + 1][k];
        if (given < 0) continue;
        start = std::max(start, given);
      }
      if (!last && number >= slots) {
        int const taken = began[way][on ? stage + 1 : stage - 1][k - static_cast<std::size_t>(slots)];
        if (taken < 0) continue;
        start = std::max(start, taken);
      }
      began[way][stage][k] = start;
      ended[way][stage][k] = free_at[stage] = start + (on ? forward : backward);
      ++next[stage];
      moved = true;
    }
  }
  for (std::size_t stage = 0; stage < p; ++stage)
    if (next[stage] != s.steps()) return 0;
  return *std::max_element(free_at.begin(), free_at.end());
}

TEST(one_f_one_b, makes_each_pass_once_and_backward_after_forward) {
  for (int p = 1; p <= 6; ++p)
    for (int m = 1; m <= 9; ++m)
      for (int stage = 0; stage < p; ++stage) {
        one_f_one_b const s{p, m};
        int forwards = 0, backwards = 0, most = 0, completed = 0;
        for (int i = 0; i < s.steps(); ++i) {
          auto const step = s.at(stage, i);
          EXPECT_EQ(step.microbatch, (step.what == pass::forward ? forwards : backwards)++) << "in order";
          EXPECT_LE(backwards, forwards);
          most = std::max(most, forwards - backwards);
          completed += s.completes_gradients(step);
          EXPECT_EQ(completed, i == s.steps() - 1 ? 1 : 0);
        }
        EXPECT_EQ(forwards, m);
        EXPECT_EQ(backwards, m);
        EXPECT_EQ(most, s.kept(stage));
        EXPECT_EQ(completed, 1);
      }
}

TEST(one_f_one_b, idles_as_long_as_it_says) {
  for (int p = 1; p <= 6; ++p)
    for (int m = 1; m <= 12; ++m)
      for (auto const& [forward, backward] : {std::pair{1, 1}, {1, 2}, {3, 2}}) {
        one_f_one_b const s{p, m};
        int const busy = m * (forward + backward), whole = makespan(s, forward, backward, m);
        EXPECT_DOUBLE_EQ(s.bubble_fraction(), 1 - static_cast<double>(busy) / whole) << p << " stages, " << m;
      }
}

TEST(one_f_one_b, never_stops_with_one_slot) {
  for (int p = 1; p <= 8; ++p)
    for (int m = 1; m <= 12; ++m) {
      EXPECT_NE(makespan({p, m}, 1, 2, 1), 0) << p << " stages, " << m << " microbatches";
    }
}

}  // namespace
