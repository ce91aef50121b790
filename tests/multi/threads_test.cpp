#include <rondo/communicator.hpp>
#include <rondo/transports/in_process.hpp>

#include <array>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

// What threads share: the engine of a communicator, the streams and boards of in_process. Small enough to be built with
// every sanitizer; the algorithms are named, so that few of them are compiled.

namespace {

using namespace rondo;
using comm = communicator<in_process>;

constexpr call_options soon{.deadline = std::chrono::seconds(60)};

void expect_all(std::vector<float> const& data, float value) {
  for (std::size_t i = 0; i < data.size(); ++i) ASSERT_EQ(data[i], value) << "at " << i;
}

class threads : public testing::TestWithParam<int> {};

TEST_P(threads, calls_in_flight_end_in_any_order_of_waiting) {
  in_process::run(GetParam(), [](comm& c) {
    float const total = static_cast<float>(c.size());
    std::array<std::vector<float>, 8> data;
    std::array<work, 8> calls;
    for (std::size_t i = 0; i < data.size(); ++i) {
      data[i].assign(i % 2 == 0 ? 300 : 50'000, 1.0F);
      calls[i] =
          i % 3 == 0 ? c.start_all_reduce<direct>(data[i], sum, soon) : c.start_all_reduce<ring>(data[i], sum, soon);
    }
    for (std::size_t i = data.size(); i-- > 0;) calls[i].wait();
    for (auto const& d : data) expect_all(d, total);
  });
}

TEST_P(threads, blocking_calls_through_boards_and_streams_take_turns) {
  in_process::run(GetParam(), [](comm& c) {
    for (int i = 0; i < 20; ++i) {
      std::vector<float> large(70'000, 1.0F), small(10, 1.0F);
      c.all_reduce<direct>(large, sum, soon);
      c.all_reduce<ring>(small, sum, soon);
      expect_all(large, static_cast<float>(c.size()));
      expect_all(small, static_cast<float>(c.size()));
    }
  });
}

TEST_P(threads, a_dropped_handle_waits_for_its_call) {
  in_process::run(GetParam(), [](comm& c) {
    std::vector<float> data(60'000, 1.0F);
    { auto const dropped = c.start_all_reduce<ring>(data, sum, soon); }
    expect_all(data, static_cast<float>(c.size()));
  });
}

TEST_P(threads, each_drives_a_communicator_of_its_own) {
  in_process::run(GetParam(), [](comm& c) {
    auto other = c.duplicate();
    auto const many = [](comm& mine) {
      for (int i = 0; i < 10; ++i) {
        std::vector<float> data(5'000, 1.0F);
        mine.all_reduce<ring>(data, sum, soon);
        expect_all(data, static_cast<float>(mine.size()));
      }
    };
    std::jthread const beside([&] { many(other); });
    many(c);
  });
}

TEST_P(threads, one_receives_while_another_sends) {
  in_process::run(GetParam(), [](comm& c) {
    rank_t const next = (c.rank() + 1) % c.size(), last = (c.rank() + c.size() - 1) % c.size();
    std::vector<int> out(100'000, c.rank()), in(out.size());
    std::jthread receiver([&] { c.receive(in, last, soon); });
    c.send(out, next, soon);
    receiver.join();
    EXPECT_EQ(in, std::vector<int>(in.size(), last));
  });
}

INSTANTIATE_TEST_SUITE_P(ranks, threads, testing::Values(2, 3, 4));

}  // namespace
