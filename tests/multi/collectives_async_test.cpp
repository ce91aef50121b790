#include "collectives.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

// Many calls in flight, several communicators and several threads at once.

namespace {

using namespace collectives_test;

using numbers = std::vector<std::int32_t>;

class over : public testing::TestWithParam<std::tuple<medium, int>> {
 protected:
  void on_ranks(std::function<void(comm&)> const& body) const {
    collectives_test::on_ranks(std::get<0>(GetParam()), std::get<1>(GetParam()), body);
  }
  static std::size_t wrong(numbers const& all, std::int32_t expected) {
    return all.size() - static_cast<std::size_t>(std::count(all.begin(), all.end(), expected));
  }
};
INSTANTIATE_TEST_SUITE_P(transports, over, testing::Combine(testing::ValuesIn(media), testing::Values(2, 3, 4)),
                         [](auto const& info) {
                           return name_of(std::get<0>(info.param)) + "_" + std::to_string(std::get<1>(info.param));
                         });

/// Sizes alternate between one message and many segments, so that calls of both kinds wait for each other.
TEST_P(over, many_all_reduces_are_in_flight_and_waited_for_in_reverse_order) {
  on_ranks([](comm& c) {
    std::size_t const calls = 40;
    std::vector<numbers> in, out;
    for (std::size_t k = 0; k < calls; ++k) {
      in.emplace_back(k % 5 == 4 ? 150000 : 100 * k + 1, static_cast<std::int32_t>(k) * (c.rank() + 1));
      out.emplace_back(in.back().size(), -1);
    }
    std::vector<work> flying;
    for (std::size_t k = 0; k < calls; ++k) flying.push_back(start_all_reduce<std::int32_t>(c, in[k], out[k], sum));
    for (; !flying.empty(); flying.pop_back()) flying.back().wait();
    std::int32_t const ranks = c.size() * (c.size() + 1) / 2;
    for (std::size_t k = 0; k < calls; ++k) {
      EXPECT_EQ(wrong(out[k], static_cast<std::int32_t>(k) * ranks), 0U) << "call " << k << ", rank " << c.rank();
      EXPECT_EQ(wrong(in[k], static_cast<std::int32_t>(k) * (c.rank() + 1)), 0U) << "input of call " << k;
    }
  });
}

TEST_P(over, every_collective_is_in_flight_at_once) {
  on_ranks([](comm& c) {
    auto const n = static_cast<std::size_t>(c.size());
    std::size_t const count = 5003;
    std::int32_t const me = c.rank() + 1, all = c.size() * (c.size() + 1) / 2;
    rank_t const root = c.size() - 1;
    numbers const mine(count, me), each(n * count, me);
    for (int round = 0; round < 5; ++round) {
      numbers summed(count), scattered(count), reduced(count), dealt(count), cast(count, me);
      numbers gathered(n * count), exchanged(n * count), collected(c.rank() == root ? n * count : 0);
      std::vector<work> flying;
      flying.push_back(start_all_reduce<std::int32_t>(c, mine, summed, sum));
      flying.push_back(start_reduce_scatter<std::int32_t>(c, each, scattered, sum));
      flying.push_back(start_barrier(c));
      flying.push_back(start_all_gather<std::int32_t>(c, mine, gathered));
      flying.push_back(start_broadcast<std::int32_t>(c, cast, root));
      flying.push_back(start_reduce<std::int32_t>(c, mine, reduced, sum, 0));
      flying.push_back(start_all_to_all<std::int32_t>(c, each, exchanged));
      flying.push_back(start_gather<std::int32_t>(c, mine, collected, root));
      flying.push_back(start_scatter<std::int32_t>(c, each, dealt, root));
      std::rotate(flying.begin(), flying.begin() + 4, flying.end());
      for (auto& call : flying) call.wait();
      EXPECT_EQ(wrong(summed, all), 0U);
      EXPECT_EQ(wrong(scattered, all), 0U);
      EXPECT_EQ(wrong(cast, root + 1), 0U);
      EXPECT_EQ(wrong(dealt, root + 1), 0U);
      if (c.rank() == 0) { EXPECT_EQ(wrong(reduced, all), 0U); }
      for (std::size_t i = 0; i < n * count; ++i) {
        auto const sender = static_cast<std::int32_t>(i / count) + 1;
        ASSERT_EQ(gathered[i], sender);
        ASSERT_EQ(exchanged[i], sender);
        if (c.rank() == root) { ASSERT_EQ(collected[i], sender); }
      }
    }
  });
}

/// Payloads that look like the first bytes of later calls must not be taken for them: a fingerprint begins with the
/// number of its call.
TEST_P(over, payloads_that_look_like_call_numbers_disturb_nobody) {
  on_ranks([](comm& c) {
    std::vector<std::vector<std::uint64_t>> data;
    std::vector<work> flying;
    for (std::uint64_t k = 0; k < 24; ++k) data.emplace_back(60000, k + 2);
    for (auto& d : data)
      flying.push_back(start_all_reduce<std::uint64_t>(c, d, d, sum, {.algorithm = algorithm::ring}));
    for (auto& call : flying) call.wait();
    for (std::uint64_t k = 0; k < data.size(); ++k)
      EXPECT_EQ(std::count(data[k].begin(), data[k].end(), (k + 2) * static_cast<std::uint64_t>(c.size())), 60000);
  });
}

TEST_P(over, test_becomes_true_without_waiting) {
  on_ranks([](comm& c) {
    numbers data(70000, 1);
    work call = start_all_reduce<std::int32_t>(c, data, data, sum);
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!call.test() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    EXPECT_TRUE(call.test()) << "a second look at a finished call";
    EXPECT_EQ(wrong(data, c.size()), 0U);
  });
}

TEST_P(over, an_unfinished_call_tests_false) {
  on_ranks([](comm& c) {
    numbers data(10, 1);
    if (c.rank() == 0) {
      work call = start_all_reduce<std::int32_t>(c, data, data, sum);
      EXPECT_FALSE(call.test());
      EXPECT_FALSE(call.wait_for(std::chrono::milliseconds(20)));
      numbers go{1};
      for (rank_t r = 1; r < c.size(); ++r) send<std::int32_t>(c, go, r);  // waits behind the all-reduce
      EXPECT_TRUE(call.test());
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      all_reduce<std::int32_t>(c, data, data, sum);
      numbers go{0};
      receive<std::int32_t>(c, go, 0);
      EXPECT_EQ(go.front(), 1);
    }
    EXPECT_EQ(wrong(data, c.size()), 0U);
  });
}

TEST_P(over, dropped_handles_finish_their_calls) {
  on_ranks([](comm& c) {
    numbers kept(3000, c.rank());
    for (int k = 0; k < 10; ++k) {
      numbers data(20000, k);
      { auto const dropped = start_all_reduce<std::int32_t>(c, data, data, sum); }
      EXPECT_EQ(wrong(data, k * c.size()), 0U);
    }
    work reused;
    for (int k = 0; k < 5; ++k) reused = start_broadcast<std::int32_t>(c, kept, 0);
    work moved = std::move(reused);
    moved.wait();
    moved.wait();
    EXPECT_TRUE(reused.test());  // NOLINT: a moved-from handle has finished
    EXPECT_EQ(wrong(kept, 0), 0U);
  });
}

TEST_P(over, handles_may_outlive_the_communicator) {
  on_ranks([](comm& c) {
    numbers data(50000, 2);
    work call;
    {
      comm other = c.duplicate();
      call = start_all_reduce<std::int32_t>(other, data, data, sum);
    }
    call.wait();
    EXPECT_EQ(wrong(data, 2 * c.size()), 0U);
  });
}

TEST_P(over, blocking_and_asynchronous_calls_alternate) {
  on_ranks([](comm& c) {
    numbers a(30000, 1), b(10, 1), d(7001, 1);
    for (int k = 0; k < 6; ++k) {
      std::fill(a.begin(), a.end(), 1);
      std::fill(b.begin(), b.end(), 1);
      std::fill(d.begin(), d.end(), c.rank());
      auto first = start_all_reduce<std::int32_t>(c, a, a, sum);
      all_reduce<std::int32_t>(c, b, b, sum);
      auto last = start_broadcast<std::int32_t>(c, d, k % c.size());
      barrier(c);
      EXPECT_TRUE(first.test()) << "a later collective is over";
      last.wait();
      EXPECT_EQ(wrong(a, c.size()) + wrong(b, c.size()) + wrong(d, k % c.size()), 0U);
    }
  });
}

TEST_P(over, messages_cross_in_both_directions) {
  on_ranks([](comm& c) {
    for (std::size_t const count : {0U, 1U, 1000U, 400000U}) {
      for (rank_t q = 0; q < c.size(); ++q) {
        if (q == c.rank()) continue;
        numbers const out(count, c.rank() + 1);
        numbers in(count, -1);
        auto sent = start_send<std::int32_t>(c, out, q);
        auto received = start_receive<std::int32_t>(c, in, q);
        received.wait();
        sent.wait();
        EXPECT_EQ(wrong(in, q + 1), 0U) << count << " elements from " << q;
      }
    }
  });
}

TEST_P(over, messages_go_round_a_ring) {
  on_ranks([](comm& c) {
    rank_t const next = (c.rank() + 1) % c.size(), before = (c.rank() + c.size() - 1) % c.size();
    numbers token(50001, c.rank());
    for (int hop = 0; hop < c.size(); ++hop) {
      numbers arrived(token.size());
      auto sent = start_send<std::int32_t>(c, token, next);
      receive<std::int32_t>(c, arrived, before);
      sent.wait();
      token = arrived;
      EXPECT_EQ(wrong(token, (c.rank() + c.size() - hop - 1) % c.size()), 0U);
    }
  });
}

TEST_P(over, many_small_messages_keep_their_order) {
  on_ranks([](comm& c) {
    int const messages = 1500;
    if (c.rank() == 0)
      for (int k = 0; k < messages; ++k)
        for (rank_t r = 1; r < c.size(); ++r) send<std::int32_t>(c, numbers(static_cast<std::size_t>(k % 4), k), r);
    else
      for (int k = 0; k < messages; ++k) {
        numbers got(static_cast<std::size_t>(k % 4), -1);
        receive<std::int32_t>(c, got, 0);
        ASSERT_EQ(wrong(got, k), 0U) << "message " << k;
      }
  });
}

TEST_P(over, messages_in_flight_arrive_in_the_order_of_the_sends) {
  on_ranks([](comm& c) {
    rank_t const next = (c.rank() + 1) % c.size(), before = (c.rank() + c.size() - 1) % c.size();
    std::size_t const messages = 60;
    std::vector<numbers> out, in;
    for (std::size_t k = 0; k < messages; ++k) {
      out.emplace_back(k % 7 == 6 ? 90000 : k, static_cast<std::int32_t>(k));
      in.emplace_back(out.back().size(), -1);
    }
    std::vector<work> flying;
    for (std::size_t k = 0; k < messages; ++k) {
      flying.push_back(start_receive<std::int32_t>(c, in[k], before));
      flying.push_back(start_send<std::int32_t>(c, out[k], next));
    }
    for (; !flying.empty(); flying.pop_back()) flying.back().wait();
    for (std::size_t k = 0; k < messages; ++k) EXPECT_EQ(wrong(in[k], static_cast<std::int32_t>(k)), 0U) << k;
  });
}

/// The reply travels on the stream whose other direction a blocking receive is waiting on.
TEST_P(over, one_thread_receives_while_another_sends) {
  on_ranks([](comm& c) {
    if (c.rank() > 1) return;
    rank_t const other = 1 - c.rank();
    int const rounds = 20;
    numbers in(2001);
    std::thread receiver([&] {
      for (int k = 0; k < rounds; ++k) {
        receive<std::int32_t>(c, in, other);
        EXPECT_EQ(wrong(in, k), 0U);
      }
    });
    for (int k = 0; k < rounds; ++k) send<std::int32_t>(c, numbers(2001, k), other);
    receiver.join();
  });
}

/// The receive is there first and can only be answered after the send, from another thread, has got past it.
TEST_P(over, a_blocking_receive_does_not_keep_another_thread_from_sending) {
  on_ranks([](comm& c) {
    if (c.rank() == 1) {
      numbers data(1000);
      receive<std::int32_t>(c, data, 0);
      send<std::int32_t>(c, data, 0);
    }
    if (c.rank() != 0) return;
    numbers answer(1000);
    std::thread receiver([&] { receive<std::int32_t>(c, answer, 1); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    send<std::int32_t>(c, numbers(1000, 7), 1);
    receiver.join();
    EXPECT_EQ(wrong(answer, 7), 0U);
  });
}

/// A call that is over is over, whatever another thread is waiting for: here for the answer to what comes after it.
TEST_P(over, a_finished_call_is_waited_for_while_another_thread_receives) {
  on_ranks([](comm& c) {
    numbers data(10, 1), answer(10);
    if (c.rank() == 1) {
      for (int k = 0; k < 2; ++k) receive<std::int32_t>(c, data, 0);
      send<std::int32_t>(c, data, 0);
    }
    if (c.rank() != 0) return;
    work first = start_send<std::int32_t>(c, data, 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::thread receiver([&] { receive<std::int32_t>(c, answer, 1); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    first.wait();
    send<std::int32_t>(c, data, 1);
    receiver.join();
    EXPECT_EQ(answer, data);
  });
}

/// Order between ranks is the caller's duty: here equal calls, so that any order will do.
TEST_P(over, blocking_calls_come_from_two_threads) {
  on_ranks([](comm& c) {
    auto const run = [&] {
      for (int k = 0; k < 15; ++k) {
        numbers data(4000, 3);
        all_reduce<std::int32_t>(c, data, data, sum);
        EXPECT_EQ(wrong(data, 3 * c.size()), 0U);
      }
    };
    std::thread other(run);
    run();
    other.join();
  });
}

TEST_P(over, several_communicators_work_at_the_same_time) {
  on_ranks([](comm& c) {
    comm second = c.duplicate(), third = c.duplicate();
    std::vector<std::thread> threads;
    int which = 0;
    for (comm* each : {&c, &second, &third})
      threads.emplace_back([each, seed = ++which] {
        for (int k = 0; k < 12; ++k) {
          numbers data(static_cast<std::size_t>(k % 3 == 0 ? 60000 : 500 * seed), seed * k);
          all_reduce<std::int32_t>(*each, data, data, sum);
          EXPECT_EQ(wrong(data, seed * k * each->size()), 0U);
          numbers const one(100, each->rank());
          numbers all(100 * static_cast<std::size_t>(each->size()));
          all_gather<std::int32_t>(*each, one, all);
          for (std::size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], static_cast<std::int32_t>(i / 100));
        }
      });
    for (auto& t : threads) t.join();
  });
}

class split_by : public testing::TestWithParam<medium> {};
INSTANTIATE_TEST_SUITE_P(transports, split_by, testing::ValuesIn(media),
                         [](auto const& info) { return name_of(info.param); });

TEST_P(split_by, color_and_key_order_the_ranks) {
  on_ranks(GetParam(), 5, [](comm& c) {
    // Ranks 1, 3, 4 in reverse order; 0 alone; 2 stays out.
    int const color = c.rank() == 2 ? -1 : c.rank() == 0 ? 7 : 1;
    std::optional<comm> part = c.split(color, -c.rank());
    ASSERT_EQ(part.has_value(), c.rank() != 2);
    if (part) {
      ASSERT_EQ(part->size(), color == 7 ? 1 : 3);
      EXPECT_EQ(part->rank(), c.rank() == 0 || c.rank() == 4 ? 0 : c.rank() == 3 ? 1 : 2);
      numbers all(static_cast<std::size_t>(part->size()));
      all_gather<std::int32_t>(*part, numbers{c.rank()}, all);
      EXPECT_EQ(all, color == 7 ? numbers{0} : (numbers{4, 3, 1}));
    }
    numbers one{1};
    all_reduce<std::int32_t>(c, one, one, sum);
    EXPECT_EQ(one.front(), 5);
  });
}

TEST_P(split_by, splits_of_splits_work_at_the_same_time_as_their_parents) {
  on_ranks(GetParam(), 4, [](comm& c) {
    comm rows = *c.split(c.rank() / 2), columns = *c.split(c.rank() % 2);
    comm again = rows.duplicate();
    comm alone = *again.split(again.rank());
    EXPECT_EQ(alone.size(), 1);
    std::vector<numbers> data{{1 << c.rank()}, {1 << c.rank()}, {1 << c.rank()}, {1 << c.rank()}, {1 << c.rank()}};
    std::vector<work> flying;
    std::size_t k = 0;
    for (comm* each : {&alone, &again, &columns, &rows, &c}) {
      flying.push_back(start_all_reduce<std::int32_t>(*each, data[k], data[k], sum));
      ++k;
    }
    for (auto& call : flying) call.wait();
    int const row = c.rank() / 2 == 0 ? 3 : 12, column = c.rank() % 2 == 0 ? 5 : 10;
    EXPECT_EQ(data, (std::vector<numbers>{{1 << c.rank()}, {row}, {column}, {row}, {15}}));
  });
}

TEST_P(split_by, a_part_outlives_the_whole) {
  on_ranks(GetParam(), 4, [](comm& c) {
    std::optional<comm> part;
    {
      comm whole = c.duplicate();
      part = whole.split(c.rank() % 2);
    }
    numbers one(100000, 1);
    all_reduce<std::int32_t>(*part, one, one, sum);
    EXPECT_EQ(std::count(one.begin(), one.end(), 2), 100000);
  });
}

/// Ranks leave as soon as they have what they need, while others are still busy.
TEST_P(split_by, ranks_may_leave_early) {
  for (int round = 0; round < 5; ++round)
    on_ranks(GetParam(), 4, [](comm& c) {
      std::vector<numbers> data(6, numbers(30000, 1));
      std::vector<work> flying;
      for (auto& d : data) flying.push_back(start_all_reduce<std::int32_t>(c, d, d, sum));
      if (c.rank() % 2 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      for (auto& call : flying) call.wait();
      for (auto const& d : data) EXPECT_EQ(std::count(d.begin(), d.end(), 4), 30000);
    });
}

}  // namespace
