#include "bootstrap_job.hpp"

#include <algorithm>
#include <atomic>
#include <latch>
#include <mutex>

namespace {

using namespace bootstrap_test;
using rondo::failure;

std::string message_of(std::function<void()> const& call) {
  try {
    call();
  } catch (rondo::error const& e) { return e.what(); }
  return "nothing was thrown";
}

void expect_contains(std::string const& text, std::string const& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

class worlds : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(sizes, worlds, testing::Values(1, 2, 3, 4, 5, 7, 8, 16));

TEST_P(worlds, exchange_gives_every_blob_to_everybody) {
  job const j(GetParam());
  expect_none(on_threads(j.size(), [&](int r) {
    auto const g = j.join(r);
    EXPECT_EQ(g->rank(), r);
    EXPECT_EQ(g->size(), j.size());
    auto const all = g->exchange("blob of " + std::to_string(r), clock::now() + 10s);
    ASSERT_EQ(all.size(), static_cast<std::size_t>(j.size()));
    for (int q = 0; q < j.size(); ++q) EXPECT_EQ(all[static_cast<std::size_t>(q)], "blob of " + std::to_string(q));
    EXPECT_FALSE(g->failed());
    EXPECT_EQ(g->verdict().why, failure::kind::none);
  }));
}

TEST_P(worlds, split_orders_by_key_then_rank) {
  job const j(GetParam());
  expect_none(on_threads(j.size(), [&](int r) {
    auto const g = j.join(r);
    auto const reversed = g->split(0, -r, clock::now() + 10s);
    ASSERT_TRUE(reversed);
    EXPECT_EQ(reversed->size(), j.size());
    EXPECT_EQ(reversed->rank(), j.size() - 1 - r);
    auto const all = reversed->exchange(std::to_string(r), clock::now() + 10s);
    for (int q = 0; q < j.size(); ++q) EXPECT_EQ(all[static_cast<std::size_t>(q)], std::to_string(j.size() - 1 - q));
  }));
}

TEST(bootstrap, a_world_of_one_needs_nothing) {
  auto const g = rondo::join(rondo::environment{});
  EXPECT_EQ(g->size(), 1);
  EXPECT_EQ(g->exchange("x", clock::now()), std::vector<std::string>{"x"});
  EXPECT_EQ(g->split(-1, 0, clock::now()), nullptr);
  g->report({failure::kind::mismatch, 0, "no"});
  EXPECT_TRUE(g->failed());
  EXPECT_THROW(g->exchange("x", clock::now()), rondo::collective_mismatch);
}

TEST(bootstrap, impossible_ranks_are_refused_at_once) {
  EXPECT_THROW(rondo::join({.rank = 3, .size = 3}), rondo::invalid_argument);
  EXPECT_THROW(rondo::join({.rank = -1, .size = 3}), rondo::invalid_argument);
  EXPECT_THROW(rondo::join({.rank = 0, .size = 0}), rondo::invalid_argument);
  EXPECT_THROW(rondo::join({.rank = 0, .size = 2, .address = "127.0.0.1", .port = 65535, .ports = 2}),
               rondo::invalid_argument);
  EXPECT_THROW(rondo::join({.rank = 0, .size = 2, .address = "127.0.0.1", .port = 1, .listen_fd = 0}),
               rondo::invalid_argument);
}

TEST(bootstrap, large_blobs_and_many_rounds) {
  job const j(4);
  expect_none(on_threads(4, [&](int r) {
    auto const g = j.join(r);
    auto const blob = [](int q) {
      return std::string(256 * 1024 + static_cast<std::size_t>(q), static_cast<char>('a' + q));
    };
    for (int i = 0; i < 5; ++i) {
      auto const all = g->exchange(blob(r), clock::now() + 20s);
      for (int q = 0; q < 4; ++q) EXPECT_TRUE(all[static_cast<std::size_t>(q)] == blob(q));
    }
    for (int i = 0; i < 300; ++i) {
      auto const all = g->exchange(std::to_string(i * 10 + r), clock::now() + 20s);
      EXPECT_EQ(all[3], std::to_string(i * 10 + 3));
    }
    EXPECT_EQ(g->exchange({}, clock::now() + 20s), std::vector<std::string>(4));
  }));
}

TEST(bootstrap, the_largest_blob_passes_and_a_larger_one_is_refused_before_it_is_sent) {
  job const j(2);
  expect_none(on_threads(2, [&](int r) {
    auto const g = j.join(r);
    std::string const most(1U << 20U, 'x');
    EXPECT_THROW(g->exchange(most + 'x', clock::now() + 20s), rondo::invalid_argument);
    EXPECT_EQ(g->exchange(most, clock::now() + 20s)[1].size(), most.size());
  }));
}

TEST(bootstrap, split_in_colors_nested_and_outliving_the_parent) {
  job const j(7);
  expect_none(on_threads(7, [&](int r) {
    auto world = j.join(r);
    auto part = world->split(r == 3 ? -1 : r % 2, 0, clock::now() + 10s);
    EXPECT_EQ(part == nullptr, r == 3);
    if (!part) return;
    EXPECT_EQ(part->size(), r % 2 ? 2 : 4);  // 1 5, 0 2 4 6
    auto const single = part->split(part->rank(), 0, clock::now() + 10s);
    EXPECT_EQ(single->size(), 1);
    auto const pair = part->split(part->rank() / 2, 0, clock::now() + 10s);
    EXPECT_EQ(pair->size(), 2);
    auto const all = pair->exchange(std::to_string(r), clock::now() + 10s);
    EXPECT_EQ(std::stoi(all[1]) - std::stoi(all[0]), r % 2 ? 4 : 2);
    world.reset();
    part.reset();
    EXPECT_EQ(pair->exchange(std::to_string(r), clock::now() + 10s), all);
    EXPECT_FALSE(pair->failed());
  }));
}

TEST(bootstrap, late_ranks_are_waited_for) {
  job const j(3);
  expect_none(on_threads(3, [&](int r) {
    std::this_thread::sleep_for(r * 200ms);
    j.join(r)->exchange("", clock::now() + 10s);
  }));
}

TEST(bootstrap, a_late_rank_0_is_waited_for) {
  job j(3);
  j.release();
  expect_none(on_threads(3, [&](int r) {
    if (r == 0) std::this_thread::sleep_for(300ms);
    j.join(r)->exchange("", clock::now() + 10s);
  }));
}

TEST(bootstrap, missing_ranks_are_named_when_the_deadline_passes) {
  job const j(5);
  auto const start = clock::now();
  auto const thrown = on_threads(5, [&](int r) {
    if (r != 2 && r != 4) j.join(r, 300ms);
  });
  EXPECT_LT(seconds_since(start), 3);
  for (int const r : {0, 1, 3}) expect_contains(thrown[static_cast<std::size_t>(r)], "ranks 2 and 4 did not join");
}

TEST(bootstrap, a_missing_rank_0_is_named) {
  job j(2);
  j.release();
  auto const text = message_of([&] { j.join(1, 200ms); });
  expect_contains(text, "did not reach rank 0 at 127.0.0.1 port " + std::to_string(j.port()));
}

TEST(bootstrap, an_exchange_names_who_did_not_take_part) {
  job const j(3);
  std::latch done(3);
  auto const thrown = on_threads(3, [&](int r) {
    auto const g = j.join(r);
    if (r != 1) {
      EXPECT_THROW(g->exchange("", clock::now() + 200ms + r * 300ms), rondo::error);
      expect_contains(g->verdict().what, "rank 1 did not take part in exchange 2 in time");
    }
    EXPECT_TRUE(fails_within(*g, 2s));
    done.arrive_and_wait();
  });
  expect_none(thrown);
}

TEST(bootstrap, a_wrong_token_is_refused_and_the_job_goes_on) {
  job const j(2);
  auto const thrown = on_threads(3, [&](int r) {
    if (r < 2) {
      if (r == 1) std::this_thread::sleep_for(200ms);
      j.join(r)->exchange("", clock::now() + 10s);
      return;
    }
    auto env = j.rank(1);
    env.token = "guessed";
    rondo::join(env, {.deadline = 100ms});
  });
  EXPECT_EQ(thrown[0], "");
  EXPECT_EQ(thrown[1], "");
  expect_contains(thrown[2], "token");
}

TEST(bootstrap, a_duplicate_is_told_who_has_its_rank_and_the_job_goes_on) {
  job const j(3);
  std::latch joined(4), refused(4);
  expect_none(on_threads(4, [&](int r) {
    auto const g = r < 3 ? j.join(r) : nullptr;
    joined.arrive_and_wait();
    if (r == 3)
      expect_contains(message_of([&] { j.join(1); }), "rank 1 is already taken by pid " + std::to_string(::getpid()));
    refused.arrive_and_wait();
    if (g) g->exchange("", clock::now() + 10s);
  }));
}

TEST(bootstrap, a_wrong_world_size_fails_the_job_on_both_sides) {
  job const j(3);
  auto const thrown = on_threads(3, [&](int r) {
    auto env = j.rank(r);
    if (r == 2) {
      std::this_thread::sleep_for(200ms);
      env.size = 4;
    }
    rondo::join(env, {.deadline = 10s});
  });
  for (auto const& text : thrown) expect_contains(text, "a world size of 4 but rank 0 with 3");
}

TEST(bootstrap, a_rank_outside_the_running_world_is_refused_alone) {
  job const j(2);
  std::latch joined(3), refused(3);
  auto const thrown = on_threads(3, [&](int r) {
    if (r < 2) {
      auto const g = j.join(r);
      joined.arrive_and_wait();
      refused.arrive_and_wait();
      g->exchange("", clock::now() + 10s);
      return;
    }
    joined.arrive_and_wait();
    auto env = j.rank(2);
    env.size = 3;
    EXPECT_THROW(rondo::join(env, {.deadline = 10s}), rondo::connect_error);
    refused.arrive_and_wait();
  });
  expect_none(thrown);
}

TEST(bootstrap, ranks_of_one_host_meet_without_an_address) {
  expect_none(on_threads(4, [&](int r) {
    rondo::environment env;
    env.rank = r;
    env.size = 4;
    env.job = "test " + std::to_string(::getpid());
    auto const g = rondo::join(env, {.deadline = 10s});
    EXPECT_EQ(g->exchange(std::to_string(r), clock::now() + 10s)[2], "2");
  }));
}

TEST(bootstrap, host_names_and_ipv6) {
  for (auto const address : {"localhost", "::1"}) {
    job j(3);
    j.release();
    expect_none(on_threads(3, [&](int r) {
      auto env = j.rank(r);
      env.address = address;
      rondo::join(env, {.deadline = 10s})->exchange("", clock::now() + 10s);
    }));
  }
}

TEST(bootstrap, a_taken_port_is_passed_over_when_there_are_others) {
  job const holder(2, "another job");
  expect_none(on_threads(5, [&](int r) {
    if (r >= 3) {
      holder.join(r - 3)->exchange("", clock::now() + 10s);
      return;
    }
    rondo::environment env = holder.rank(r);
    env.token = "ours";
    env.size = 3;
    env.listen_fd = -1;
    env.ports = std::min(8, 65536 - env.port);
    rondo::join(env, {.deadline = 10s})->exchange("", clock::now() + 10s);
  }));
}

TEST(bootstrap, the_same_port_serves_one_job_after_another) {
  job j(3);
  j.release();
  expect_none(on_threads(3, [&](int r) {
    for (int i = 0; i < 20; ++i) j.join(r)->exchange(std::to_string(i), clock::now() + 10s);
  }));
}

TEST(bootstrap, the_first_report_is_the_verdict_of_all) {
  job const j(5);
  std::latch joined(5), done(5);
  std::mutex mutex;
  std::vector<std::string> verdicts;
  expect_none(on_threads(5, [&](int r) {
    auto const g = j.join(r);
    joined.arrive_and_wait();
    if (r == 1 || r == 3) g->report({failure::kind::mismatch, r, "from rank " + std::to_string(r)});
    EXPECT_TRUE(fails_within(*g, 1s));
    EXPECT_THROW(g->exchange("", clock::now() + 10s), rondo::collective_mismatch);
    std::scoped_lock const lock(mutex);
    verdicts.push_back(g->verdict().what);
    done.count_down();
  }));
  ASSERT_EQ(verdicts.size(), 5U);
  for (auto const& v : verdicts) EXPECT_EQ(v, verdicts[0]);
}

TEST(bootstrap, a_failed_part_leaves_the_others_alone) {
  job const j(4);
  std::latch split(4), failed(4);
  expect_none(on_threads(4, [&](int r) {
    auto const world = j.join(r);
    auto const part = world->split(r % 2, 0, clock::now() + 10s);
    split.arrive_and_wait();
    if (r == 2) part->report({failure::kind::other, 1, "broken"});
    if (r % 2 == 0) { EXPECT_TRUE(fails_within(*part, 1s)); }
    failed.arrive_and_wait();
    EXPECT_FALSE(world->failed());
    EXPECT_EQ(part->failed(), r % 2 == 0);
    world->exchange("", clock::now() + 10s);
    if (r % 2) part->exchange("", clock::now() + 10s);
  }));
}

TEST(bootstrap, a_deadline_names_the_rank_that_has_not_entered_the_call) {
  job const j(4);
  std::latch joined(4), done(4);
  expect_none(on_threads(4, [&](int r) {
    auto const g = j.join(r);
    g->entered(r == 2 ? 16 : 17);
    g->finished(16);
    joined.arrive_and_wait();
    if (r == 0) g->report({failure::kind::deadline, 1, "all_reduce 17 is late"});
    EXPECT_TRUE(fails_within(*g, 1s));
    EXPECT_EQ(g->verdict().rank, 2);
    EXPECT_EQ(g->verdict().why, failure::kind::deadline);
    EXPECT_EQ(g->verdict().what,
              "all_reduce 17 is late: rank 2 has not entered call 17 (its last finished call is 16)");
    done.arrive_and_wait();
  }));
}

TEST(bootstrap, a_deadline_with_all_ranks_in_the_call_keeps_the_reporters_word) {
  job const j(3);
  std::latch joined(3), done(3);
  expect_none(on_threads(3, [&](int r) {
    auto const g = j.join(r);
    g->entered(5);
    joined.arrive_and_wait();
    if (r == 2) g->report({failure::kind::deadline, 1, "waited for rank 1"});
    EXPECT_TRUE(fails_within(*g, 1s));
    EXPECT_EQ(g->verdict().rank, 1);
    EXPECT_EQ(g->verdict().what, "waited for rank 1");
    done.arrive_and_wait();
  }));
}

TEST(bootstrap, leaving_in_any_order_fails_nobody) {
  for (int const first : {0, 1, 2}) {
    job const j(3);
    std::latch left(3);
    expect_none(on_threads(3, [&](int r) {
      auto g = j.join(r);
      g->entered(4);
      g->finished(4);
      if (r == first) g.reset();
      left.arrive_and_wait();
      std::this_thread::sleep_for(250ms);
      if (g) { EXPECT_FALSE(g->failed()) << g->verdict().what; }
    }));
  }
}

TEST(bootstrap, a_departure_is_known_and_a_report_about_it_says_so) {
  for (int const gone : {1, 2}) {
    job const j(3);
    std::latch left(3), known(2), done(3);
    expect_none(on_threads(3, [&](int r) {
      auto g = j.join(r);
      g->entered(16);
      g->finished(16);
      if (r == gone) g.reset();
      left.arrive_and_wait();
      if (r != gone) {
        auto const until = clock::now() + 1s;
        while (!g->departed(gone) && clock::now() < until) std::this_thread::sleep_for(2ms);
        EXPECT_TRUE(g->departed(gone));
        EXPECT_FALSE(g->departed(3 - gone));
        EXPECT_FALSE(g->failed());
        known.arrive_and_wait();
        if (r == 0) g->report({failure::kind::peer_lost, gone, "its stream ended"});
        EXPECT_TRUE(fails_within(*g, 1s));
        EXPECT_EQ(g->verdict().why, failure::kind::peer_lost);
        EXPECT_EQ(g->verdict().rank, gone);
        expect_contains(g->verdict().what, "has left the group after call 16");
      }
      done.arrive_and_wait();
    }));
  }
}

TEST(bootstrap, groups_without_rank_0_go_on_when_it_has_left) {
  job const j(4);
  std::latch left(4);
  expect_none(on_threads(4, [&](int r) {
    auto g = j.join(r);
    auto part = g->split(r > 0, 0, clock::now() + 10s);
    if (r == 0) part.reset();
    g.reset();
    left.arrive_and_wait();
    if (r == 0) return;
    EXPECT_EQ(part->exchange(std::to_string(r), clock::now() + 10s)[2], "3");
    EXPECT_EQ(part->split(0, -r, clock::now() + 10s)->rank(), 3 - r);
    EXPECT_FALSE(part->failed());
  }));
}

TEST(bootstrap, the_end_of_the_process_of_rank_0_fails_nobody) {
  job const j(3);
  process rank_0([&]() -> int {
    j.join(0)->exchange("", clock::now() + 10s);
    std::exit(0);
  });
  std::latch joined(2);
  expect_none(on_threads(2, [&](int r) {
    auto const g = j.join(r + 1);
    g->exchange("", clock::now() + 10s);
    joined.arrive_and_wait();
    if (r == 0) { EXPECT_GE(rank_0.wait(), 0); }  // ThreadSanitizer gives a forked child that exits its own code
    std::this_thread::sleep_for(200ms);
    EXPECT_FALSE(g->failed()) << g->verdict().what;
    EXPECT_TRUE(g->departed(0));
    auto const start = clock::now();
    expect_contains(message_of([&] { g->exchange("", clock::now() + 10s); }), "rank 0");
    g->report({failure::kind::peer_lost, 0, "rank 0 has left"});
    EXPECT_EQ(g->verdict().what, "rank 0 has left");
    EXPECT_LT(seconds_since(start), 1);
  }));
}

TEST(bootstrap, a_process_that_leaves_and_exits_at_once_without_its_destructors_fails_nobody) {
  constexpr int size = 8;
  for (int again = 0; again < 25; ++again) {
    job const j(size);
    process rank_0([&]() -> int {
      auto g = j.join(0);
      g->exchange("", clock::now() + 10s);
      g.reset();
      ::_exit(0);
    });
    expect_none(on_threads(size - 1, [&](int r) {
      auto const g = j.join(r + 1);
      g->exchange("", clock::now() + 10s);
      auto const until = clock::now() + 5s;
      while (!g->departed(0) && !g->failed() && clock::now() < until) std::this_thread::sleep_for(1ms);
      EXPECT_TRUE(g->departed(0)) << g->verdict().what;
      EXPECT_FALSE(g->failed()) << g->verdict().what;
    }));
  }
}

TEST(bootstrap, an_exchange_with_a_rank_that_has_left_fails_at_once) {
  for (int const gone : {0, 1}) {
    job const j(3);
    std::latch left(3);
    expect_none(on_threads(3, [&](int r) {
      auto g = j.join(r);
      if (r == gone) g.reset();
      left.arrive_and_wait();
      auto const start = clock::now();
      if (g) {
        expect_contains(message_of([&] { g->exchange("", clock::now() + 10s); }), "has left");
      }
      EXPECT_LT(seconds_since(start), 2);
    }));
  }
}

TEST(bootstrap, destroying_never_blocks_after_a_failure) {
  job const j(4);
  std::latch failed(4);
  expect_none(on_threads(4, [&](int r) {
    auto g = j.join(r);
    if (r == 0) g->report({failure::kind::other, 3, "broken"});
    EXPECT_TRUE(fails_within(*g, 1s));
    failed.arrive_and_wait();
    auto const start = clock::now();
    g.reset();
    EXPECT_LT(seconds_since(start), 1);
  }));
}

}  // namespace
