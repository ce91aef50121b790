#include "../conformance/ranks.hpp"
#include <rondo/transports/in_process_group.hpp>
#include <rondo/transports/tcp.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <optional>
#include <span>
#include <thread>

namespace rondo::testing {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

void world(int n, tcp_options const& options, std::function<void(rank_t, std::optional<tcp>&)> const& body) {
  auto const groups = in_process_group::make(n);
  on_ranks(n, [&](rank_t r) {
    std::optional x(tcp::connect(groups[static_cast<std::size_t>(r)], options));
    body(r, x);
  });
}

TEST(tcp, survives_tiny_buffers_both_ways_at_once) {
  constexpr std::size_t size = std::size_t{4} << 20;
  for (int const streams : {1, 2, 5}) {
    tcp_options options;
    options.send_buffer = options.receive_buffer = 4096;
    options.streams = streams;
    options.stripe = 10'001;
    world(2, options, [](rank_t r, auto& x) {
      EXPECT_TRUE(exchange(*x, {1 - r}, stream(static_cast<unsigned>(r), size))[0] ==
                  stream(static_cast<unsigned>(1 - r), size));
    });
  }
}

TEST(tcp, keeps_order_over_stripes_of_any_size) {
  for (std::size_t const stripe : {1u, 7u, 4096u, 1u << 20}) {
    tcp_options options;
    options.streams = 3;
    options.stripe = stripe;
    auto const size = std::min<std::size_t>(stripe * 5'000 + 1, 3 << 20);
    world(2, options, [size](rank_t r, auto& x) {
      if (r == 0) return send(*x, 1, stream(5, size));
      EXPECT_TRUE(receive(*x, 0, size) == stream(5, size));
    });
  }
}

TEST(tcp, sends_what_it_held_back_before_it_sleeps) {
  auto fastest = 1000ms;
  world(2, {}, [&](rank_t r, auto& x) {
    for (int i = 0; i < 5; ++i) {
      if (r == 0) {
        send(*x, 1, stream(0, 10), true);
        receive(*x, 1, 10);
        continue;
      }
      auto const start = clock::now();
      EXPECT_EQ(receive(*x, 0, 10), stream(0, 10));
      send(*x, 0, stream(0, 10));
      fastest = std::min(fastest, std::chrono::ceil<std::chrono::milliseconds>(clock::now() - start));
    }
  });
  EXPECT_LT(fastest, 100ms) << "only the kernel's clock has sent it";
}

TEST(tcp, delivers_all_that_it_accepted_before_it_was_destroyed) {
  for (int const streams : {1, 3}) {
    std::size_t accepted = 0;
    std::atomic<bool> gone{false};
    tcp_options options;
    options.streams = streams;
    world(2, options, [&](rank_t r, auto& x) {
      auto const message = stream(6, std::size_t{10} << 20);
      if (r == 0) {
        accepted = x->write(1, message, false);
        auto const start = clock::now();
        x.reset();
        EXPECT_LT(clock::now() - start, 2s);
        gone = true;
        return;
      }
      while (!gone) std::this_thread::sleep_for(1ms);
      EXPECT_TRUE(std::equal(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(accepted),
                             receive(*x, 0, accepted).begin()));
      EXPECT_THROW(receive(*x, 0, 1), peer_lost);
    });
  }
}

TEST(tcp, is_destroyed_quickly_while_the_peer_goes_on_sending) {
  world(2, {}, [&](rank_t r, auto& x) {
    if (r == 0) {
      receive(*x, 1, 1);
      auto const start = clock::now();
      x.reset();
      EXPECT_LT(clock::now() - start, 2s);
      return;
    }
    auto const message = stream(0, std::size_t{1} << 20);
    EXPECT_THROW(
        {
          for (int i = 0; i < 1000; ++i) send(*x, 0, message);
        },
        peer_lost);
  });
}

TEST(tcp, is_assigned_by_move) {
  auto const groups = in_process_group::make(2);
  on_ranks(2, [&](rank_t r) {
    auto const& g = groups[static_cast<std::size_t>(r)];
    auto x = tcp::connect(g);
    auto y = tcp::connect(g);
    send(x, 1 - r, stream(0, 10));
    x = std::move(y);
    EXPECT_EQ(exchange(x, {1 - r}, stream(1, 1000))[0], stream(1, 1000));
  });
}

}  // namespace
}  // namespace rondo::testing
