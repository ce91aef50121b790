#include "calls.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <stdexcept>

namespace {

using namespace faults_test;
using namespace std::chrono_literals;

constexpr std::size_t large = 1U << 20U;

class teardown : public bounded<medium> {
 protected:
  medium on() const { return GetParam(); }
};

/// Descriptors and mappings of this process.
struct holdings {
  long descriptors, mappings;

  static holdings now() {
    std::ifstream maps("/proc/self/maps");
    return {std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}),
            std::count(std::istreambuf_iterator<char>(maps), {}, '\n')};
  }
};

void nap(std::mt19937& random, int most_us) {
  std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution(0, most_us)(random)));
}

TEST_P(teardown, a_handle_outlives_its_communicator) {
  team ranks(on(), 3, [](comm& c, seat&) {
    std::vector<float> data(large, 1.0F), small(3, 1.0F);
    std::optional<comm> other(c.duplicate());
    auto first = other->start_all_reduce<ring>(data, sum), second = other->start_all_reduce<ring>(small, sum);
    if (c.rank() == 1) std::this_thread::sleep_for(50ms);
    other.reset();
    first.wait();
    second.wait();
    demand_all<float>(data, 3, "a pending all_reduce");
    demand_all<float>(small, 3, "a second one");
  });
  ranks.wait();
  ranks.expect_all(ending::done);
}

TEST_P(teardown, dropped_handles_finish_their_calls) {
  team ranks(on(), 3, [](comm& c, seat&) {
    std::vector<float> data(large, 1.0F), small(3, 1.0F);
    if (c.rank() == 1) std::this_thread::sleep_for(50ms);
    { auto const first = c.start_all_reduce<ring>(data, sum), second = c.start_all_reduce<ring>(small, sum); }
    demand_all<float>(data, 3, "a pending all_reduce");
    demand_all<float>(small, 3, "a second one");
  });
  ranks.wait();
  ranks.expect_all(ending::done);
}

TEST_P(teardown, leaving_early_disturbs_nobody) {
  using enum collective;
  static std::vector<call> const last_calls{
      {},
      {.count = 5000},
      {.count = 40000},
      {.starts = true},
      {.what = broadcast, .root = 1},
      {.what = broadcast, .count = 50000},
      {.what = reduce, .count = 3000, .root = 2},
      {.what = gather, .count = 20000},
      {.what = scatter, .count = 20000, .root = 1},
      {.what = all_gather, .count = 7},
      {.what = all_to_all, .count = 3000},
      {.what = reduce_scatter, .count = 10000},
      {.what = barrier},
  };
  team ranks(on(), 3, [](comm& c, seat& s) {
    std::mt19937 random(static_cast<unsigned>(c.rank()) + 1);
    for (int i = 0; i < 200; ++i) {
      auto other = c.duplicate();
      nap(random, 1000);
      make(other, {.count = 10});
      nap(random, 1000);
      make(other, last_calls[static_cast<std::size_t>(i) % last_calls.size()]);
      s.progress = i;
    }
  });
  ranks.wait();
  ranks.expect_all(ending::done);
}

TEST_P(teardown, a_sender_may_leave_before_its_message_is_read) {
  team ranks(on(), 3, [](comm& c, seat&) {
    std::mt19937 random(static_cast<unsigned>(c.rank()) + 1);
    for (int i = 0; i < 60; ++i) {
      auto other = c.duplicate();
      rank_t const sender = i % 3, receiver = (i + 1) % 3;
      std::size_t const count = i % 2 == 0 ? 10 : 30000;
      if (c.rank() == receiver) {
        nap(random, 3000);
        make(other, {.what = collective::send_receive, .count = count, .sender = sender});
      } else if (c.rank() == sender) {
        make(other, {.what = collective::send_receive, .count = count, .to = receiver});
      }
    }
  });
  ranks.wait();
  ranks.expect_all(ending::done);
}

TEST_P(teardown, communicators_leave_no_descriptor_and_no_mapping) {
  if (on() == medium::in_process) GTEST_SKIP() << "threads share what is counted";
  team ranks(on(), 3, [](comm& c, seat&) {
    holdings before{};
    for (int i = 0; i < 220; ++i) {
      if (i == 20) before = holdings::now();
      auto other = i % 2 == 0 ? c.duplicate() : *c.split(c.rank() / 2);
      make(other, {.count = 1000, .starts = i % 4 == 0});
    }
    make(c, {.what = collective::barrier});
    auto const after = holdings::now();
    demand(after.descriptors <= before.descriptors,
           std::to_string(after.descriptors - before.descriptors) + " descriptors are left");
    demand(after.mappings < before.mappings + 5, std::to_string(after.mappings - before.mappings) + " mappings more");
  });
  ranks.wait();
  ranks.expect_all(ending::done);
}

TEST_P(teardown, jobs_leave_no_descriptor_and_no_mapping) {
  if (on() != medium::in_process) GTEST_SKIP() << "a process joins once";
  holdings before{};
  for (int i = 0; i < 220; ++i) {
    if (i == 20) before = holdings::now();
    team ranks(on(), 3, [](comm& c, seat&) { make(c, {.count = 1000}); });
    ranks.wait();
    ranks.expect_all(ending::done);
  }
  auto const after = holdings::now();
  EXPECT_LE(after.descriptors, before.descriptors);
  EXPECT_LT(after.mappings, before.mappings + 5);
}

TEST_P(teardown, an_exception_of_the_user_tells_the_others) {
  team ranks(on(), 3, [](comm& c, seat&) {
    make(c, {});
    if (c.rank() == 1) throw std::runtime_error("the user's own");
    make(c, {.count = 1000});
  });
  ranks.wait();
  ranks.expect_all(ending::peer_lost, {1});
  EXPECT_EQ(ranks[1].how, ending::other);
  EXPECT_EQ(ranks[1].text(), "the user's own");
  ranks.expect_named(1);
}

TEST_P(teardown, refused_arguments_change_nothing) {
  team ranks(on(), 3, [](comm& c, seat&) {
    std::vector<float> data(3);
    for (int i = 0; i < 3; ++i) {
      if (c.rank() == i) {
        bool refused = false;
        try {
          make(c, {.what = collective::broadcast, .root = 7});
        } catch (invalid_argument const&) { refused = true; }
        demand(refused, "root 7 of 3 ranks was accepted");
      }
      make(c, {});
    }
  });
  ranks.wait();
  ranks.expect_all(ending::done);
}

INSTANTIATE_TEST_SUITE_P(of, teardown, testing::ValuesIn(media), [](auto const& info) { return name_of(info.param); });

}  // namespace
