#pragma once

#include "ranks.hpp"
#include <rondo/error.hpp>
#include <rondo/transport.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <span>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace rondo::testing {

// Sizes in bytes, odd where that can matter.
inline constexpr std::size_t some = 60'000, many = 300'001;

/// More than the buffers on the way hold: what the backend says, or so much that no kernel takes it.
template <class Backend>
constexpr std::size_t larger_than_any_buffer() {
  if constexpr (requires { Backend::larger_than_its_buffers; })
    return Backend::larger_than_its_buffers;
  else
    return (std::size_t{16} << 20) + 1;
}

/// What every transport must do. A backend has a static member template
///
///     template <class Body> static void world(int n, Body body);   // body(rank, x) on n connected ranks
///
/// and says whether its streams report a peer that has gone: static constexpr bool notices_departure. Where it is slow,
/// it may say what is larger than its buffers: static constexpr std::size_t larger_than_its_buffers.
template <class Backend>
class transport_suite : public ::testing::Test {};

TYPED_TEST_SUITE_P(transport_suite);

TYPED_TEST_P(transport_suite, knows_rank_and_size) {
  for (int const n : {1, 2, 3})
    TypeParam::world(n, [n](rank_t r, auto& x) {
      static_assert(transport<std::remove_reference_t<decltype(x)>>);
      EXPECT_EQ(x.rank(), r);
      EXPECT_EQ(x.size(), n);
    });
}

TYPED_TEST_P(transport_suite, echoes_odd_sizes) {
  TypeParam::world(2, [](rank_t r, auto& x) {
    for (std::size_t const n : {0u, 1u, 7u, 63u, 64u, 65u, 4095u, (1u << 20) + 3}) {
      auto const message = stream(n, n);
      if (r == 0) {
        send(x, 1, message);
        EXPECT_EQ(receive(x, 1, n), message) << n;
      } else {
        send(x, 0, receive(x, 0, n));
      }
    }
  });
}

TYPED_TEST_P(transport_suite, accepts_empty_spans) {
  TypeParam::world(2, [](rank_t r, auto& x) {
    EXPECT_EQ(x.write(1 - r, {}, false), 0u);
    EXPECT_EQ(x.read(1 - r, {}), 0u);
    exchange(x, {1 - r}, stream(1, 5));
  });
}

TYPED_TEST_P(transport_suite, keeps_the_order_of_any_mix_of_calls) {
  TypeParam::world(2, [](rank_t r, auto& x) {
    rank_t const peer = 1 - r;
    auto const out = stream(static_cast<unsigned>(r), many), expected = stream(static_cast<unsigned>(peer), many);
    std::minstd_rand random(static_cast<unsigned>(r) + 7);
    auto const up_to = [&](std::size_t n) { return random() % n + 1; };
    bytes in;
    patience const p;
    for (std::size_t sent = 0; sent < many || in.size() < many;) {
      bool moved = false;
      for (int i = 0; i < 8 && sent < many; ++i) {
        auto const part = std::span(out).subspan(sent, std::min(many - sent, up_to(i == 0 ? 5000 : 40)));
        auto const n = x.write(peer, part, sent + part.size() < many && random() % 2 == 0);
        sent += n;
        moved |= n != 0;
      }
      auto const left = many - in.size();
      if (left > 0 && random() % 2 == 0) {
        auto const got = x.readable(peer, std::min(left, up_to(100)));
        auto const n = got.empty() ? 0 : up_to(got.size());
        in.insert(in.end(), got.begin(), got.begin() + static_cast<std::ptrdiff_t>(n));
        x.consume(peer, n);
        moved |= n != 0;
      } else if (left > 0) {
        bytes part(std::min(left, up_to(random() % 8 == 0 ? 9000 : 50)));
        auto const n = x.read(peer, part);
        in.insert(in.end(), part.begin(), part.begin() + static_cast<std::ptrdiff_t>(n));
        moved |= n != 0;
      }
      if (!moved) p.pause(x);
    }
    EXPECT_EQ(in, expected);
  });
}

TYPED_TEST_P(transport_suite, moves_large_messages_both_ways_at_once) {
  TypeParam::world(2, [](rank_t r, auto& x) {
    auto const size = larger_than_any_buffer<TypeParam>();
    auto const in = exchange(x, {1 - r}, stream(static_cast<unsigned>(r), size));
    EXPECT_TRUE(in[0] == stream(static_cast<unsigned>(1 - r), size));
  });
}

TYPED_TEST_P(transport_suite, joins_all_pairs) {
  for (int const n : {2, 3, 5, 8})
    TypeParam::world(n, [n](rank_t r, auto& x) {
      std::vector<rank_t> peers;
      for (rank_t q = 0; q < n; ++q)
        if (q != r) peers.push_back(q);
      constexpr std::size_t size = 70'001;
      auto const in = exchange(x, peers, stream(static_cast<unsigned>(r), size));
      for (std::size_t i = 0; i < peers.size(); ++i)
        EXPECT_TRUE(in[i] == stream(static_cast<unsigned>(peers[i]), size)) << peers[i] << " to " << r << " of " << n;
    });
}

TYPED_TEST_P(transport_suite, shows_at_least_what_is_needed_contiguously) {
  constexpr std::array<std::size_t, 9> needs{1, 3, 64, 65, 4096, 4097, 65535, 65536, 2};
  TypeParam::world(2, [&](rank_t r, auto& x) {
    std::size_t total = 0;
    for (auto const n : needs) total += n;
    for (unsigned turn = 0; turn < 5; ++turn) {
      auto const message = stream(turn, total);
      if (r == 0) {
        send(x, 1, message);
        continue;
      }
      auto rest = std::span(message);
      patience const p;
      for (auto const need : needs) {
        auto got = x.readable(0, need);
        for (; got.empty(); got = x.readable(0, need)) p.pause(x);
        ASSERT_GE(got.size(), need);
        EXPECT_TRUE(std::equal(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(need), got.begin())) << need;
        x.consume(0, need);
        rest = rest.subspan(need);
      }
      send(x, 0, stream(turn, 1));
    }
    if (r == 0) receive(x, 1, 5);
  });
}

TYPED_TEST_P(transport_suite, shows_nothing_until_enough_is_there) {
  TypeParam::world(2, [](rank_t r, auto& x) {
    auto const message = stream(0, 64);
    if (r == 0) {
      send(x, 1, std::span(message).first(63));
      receive(x, 1, 1);
      send(x, 1, std::span(message).last(1));
      return;
    }
    patience const p;
    while (x.readable(0, 63).empty()) p.pause(x);
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(x.readable(0, 64).empty());
      EXPECT_EQ(x.readable(0, 63).size(), 63u);
    }
    send(x, 0, stream(0, 1));
    while (x.readable(0, 64).empty()) p.pause(x);
    auto const got = x.readable(0, 64);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), message.begin(), message.end()));
    x.consume(0, 64);
  });
}

TYPED_TEST_P(transport_suite, consumes_in_parts) {
  TypeParam::world(2, [](rank_t r, auto& x) {
    auto const message = stream(3, 1000);
    if (r == 0) return send(x, 1, message), void(receive(x, 1, 1));
    patience const p;
    while (x.readable(0, 1000).empty()) p.pause(x);
    std::size_t at = 0;
    for (std::size_t const n : {0u, 1u, 0u, 7u, 64u, 500u}) {
      x.consume(0, n);
      at += n;
      auto const got = x.readable(0, 1000 - at);
      ASSERT_EQ(got.size(), 1000 - at);
      EXPECT_TRUE(std::equal(got.begin(), got.end(), message.begin() + static_cast<std::ptrdiff_t>(at)));
    }
    EXPECT_TRUE(
        std::equal(message.begin() + static_cast<std::ptrdiff_t>(at), message.end(), receive(x, 0, 1000 - at).begin()));
    EXPECT_TRUE(x.readable(0, 1).empty());
    send(x, 0, stream(0, 1));
  });
}

TYPED_TEST_P(transport_suite, sends_what_was_held_back_with_the_next_write) {
  TypeParam::world(2, [](rank_t r, auto& x) {
    for (unsigned i = 0; i < 300; ++i) {
      auto const head = stream(i, 16), body = stream(i + 1, i % 90 + 1);
      if (r == 0) {
        send(x, 1, head, true);
        send(x, 1, body);
        receive(x, 1, 1);
      } else {
        EXPECT_EQ(receive(x, 0, head.size()), head);
        EXPECT_EQ(receive(x, 0, body.size()), body);
        send(x, 0, stream(0, 1));
      }
    }
  });
}

TYPED_TEST_P(transport_suite, wait_lasts_for_its_patience) {
  using namespace std::chrono;
  TypeParam::world(2, [](rank_t, auto& x) {
    auto const start = steady_clock::now();
    int returns = 0;
    for (; steady_clock::now() - start < milliseconds(200); ++returns) x.wait(milliseconds(20));
    EXPECT_LT(returns, 100) << "wait() does not sleep";
    EXPECT_LT(steady_clock::now() - start, seconds(5));
    x.wait(nanoseconds(0));
  });
}

TYPED_TEST_P(transport_suite, wait_ends_when_something_arrives) {
  using namespace std::chrono;
  TypeParam::world(2, [](rank_t r, auto& x) {
    if (r == 0) {
      std::this_thread::sleep_for(milliseconds(100));
      send(x, 1, stream(0, 1));
      receive(x, 1, 1);
      return;
    }
    auto const start = steady_clock::now();
    while (x.readable(0, 1).empty()) x.wait(seconds(20));
    EXPECT_LT(steady_clock::now() - start, seconds(10));
    send(x, 0, stream(0, 1));
  });
}

TYPED_TEST_P(transport_suite, wait_ends_when_there_is_room_again) {
  using namespace std::chrono;
  TypeParam::world(2, [](rank_t r, auto& x) {
    auto const size = larger_than_any_buffer<TypeParam>();
    auto const message = stream(0, size);
    if (r == 1) {
      std::this_thread::sleep_for(milliseconds(100));
      EXPECT_TRUE(receive(x, 0, size) == message);
      return;
    }
    auto const start = steady_clock::now();
    for (auto rest = std::span(message); !rest.empty();) {
      auto const n = x.write(1, rest, false);
      rest = rest.subspan(n);
      if (n == 0) x.wait(seconds(20));
    }
    EXPECT_LT(steady_clock::now() - start, seconds(15));
  });
}

TYPED_TEST_P(transport_suite, wait_sleeps_while_other_bytes_lie_unread) {
  using namespace std::chrono;
  TypeParam::world(3, [](rank_t r, auto& x) {
    if (r == 2) return send(x, 0, stream(0, 10'000)), void(receive(x, 0, 1));
    if (r == 1) return void(receive(x, 0, 1));
    std::this_thread::sleep_for(milliseconds(50));
    auto const start = steady_clock::now();
    int returns = 0;
    for (; steady_clock::now() - start < milliseconds(200); ++returns) {
      EXPECT_TRUE(x.readable(1, 1).empty());
      x.wait(milliseconds(20));
    }
    EXPECT_LT(returns, 100);
    EXPECT_EQ(receive(x, 2, 10'000), stream(0, 10'000));
    send(x, 1, stream(0, 1));
    send(x, 2, stream(0, 1));
  });
}

TYPED_TEST_P(transport_suite, wait_ends_at_once_after_news_that_a_call_for_another_peer_has_seen) {
  using namespace std::chrono;
  TypeParam::world(3, [](rank_t r, auto& x) {
    if (r == 2) return send(x, 0, stream(0, 1)), void(receive(x, 0, 1));
    if (r == 1) return void(receive(x, 0, 1));
    std::this_thread::sleep_for(milliseconds(100));  // the byte of rank 2 has come
    EXPECT_TRUE(x.readable(1, 1).empty());
    auto const start = steady_clock::now();
    x.wait(seconds(10));
    EXPECT_LT(steady_clock::now() - start, seconds(5));
    EXPECT_EQ(receive(x, 2, 1), stream(0, 1));
    send(x, 1, stream(0, 1));
    send(x, 2, stream(0, 1));
  });
}

TYPED_TEST_P(transport_suite, a_full_stream_holds_up_no_other) {
  TypeParam::world(3, [](rank_t r, auto& x) {
    std::array<std::size_t, 1> accepted{};  // by rank 0; what it is goes by way of rank 2
    if (r == 0) {
      auto const block = stream(1, 100'000);
      patience const p;
      auto& total = accepted[0];
      for (int fruitless = 0; fruitless < 3;) {
        auto const place = total % block.size();
        auto const n = x.write(1, std::span(block).subspan(place), false);
        total += n;
        fruitless = n == 0 ? fruitless + 1 : 0;
        if (n == 0) p.pause(x);
      }
      exchange(x, {2}, stream(0, 200'000));
      send(x, 2, std::as_bytes(std::span(accepted)));
    } else if (r == 2) {
      EXPECT_EQ(exchange(x, {0}, stream(0, 200'000))[0], stream(0, 200'000));
      send(x, 1, receive(x, 0, sizeof accepted));
    } else {
      std::memcpy(accepted.data(), receive(x, 2, sizeof accepted).data(), sizeof accepted);
      ASSERT_NE(accepted[0], 0u);
      auto const block = stream(1, 100'000);
      auto const got = receive(x, 0, accepted[0]);
      for (std::size_t i = 0; i < got.size(); ++i)
        if (got[i] != block[i % block.size()]) return ADD_FAILURE() << "wrong byte at " << i;
    }
  });
}

TYPED_TEST_P(transport_suite, delivers_what_a_departed_rank_has_sent) {
  TypeParam::world(2, [](rank_t r, auto& x) {
    if (r == 0) return send(x, 1, stream(9, some));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(receive(x, 0, some), stream(9, some));
  });
}

TYPED_TEST_P(transport_suite, reports_a_departed_rank_by_name) {
  if (!TypeParam::notices_departure) GTEST_SKIP() << "the group tells";
  TypeParam::world(3, [](rank_t r, auto& x) {
    if (r == 1) return send(x, 2, stream(9, 1000));
    patience const p;
    bytes one(1);
    auto const lost = [&](auto call) {
      try {
        for (;; p.pause(x)) call();
      } catch (peer_lost const& e) { EXPECT_EQ(e.rank(), 1); }
    };
    if (r == 2) { EXPECT_EQ(receive(x, 1, 1000), stream(9, 1000)); }
    lost([&] { x.read(1, one); });
    lost([&] { x.readable(1, 1); });
    lost([&] { x.write(1, one, false); });
    exchange(x, {2 - r}, stream(0, 1000));
    x.wait(std::chrono::milliseconds(1));
  });
}

TYPED_TEST_P(transport_suite, can_be_destroyed_with_unread_bytes) {
  TypeParam::world(2, [](rank_t r, auto& x) {
    if (r == 1) {
      patience const p;
      while (x.readable(0, 1).empty()) p.pause(x);
      return send(x, 0, stream(4, some));
    }
    auto const unwanted = stream(0, 500'000);
    x.write(1, unwanted, false);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(receive(x, 1, some), stream(4, some));
  });
}

TYPED_TEST_P(transport_suite, goes_on_after_a_move) {
  TypeParam::world(2, [](rank_t r, auto& x) {
    constexpr std::size_t size = 3'000;  // which any transport takes before the peer reads
    send(x, 1 - r, stream(static_cast<unsigned>(r), size));
    patience const p;
    while (x.readable(1 - r, 1).empty()) p.pause(x);
    std::vector<std::remove_reference_t<decltype(x)>> kept;
    kept.push_back(std::move(x));
    auto& moved = kept.front();
    EXPECT_EQ(moved.rank(), r);
    EXPECT_EQ(receive(moved, 1 - r, size), stream(static_cast<unsigned>(1 - r), size));
    exchange(moved, {1 - r}, stream(1, 100'000));
  });
}

REGISTER_TYPED_TEST_SUITE_P(transport_suite, knows_rank_and_size, echoes_odd_sizes, accepts_empty_spans,
                            keeps_the_order_of_any_mix_of_calls, moves_large_messages_both_ways_at_once,
                            joins_all_pairs, shows_at_least_what_is_needed_contiguously,
                            shows_nothing_until_enough_is_there, consumes_in_parts,
                            sends_what_was_held_back_with_the_next_write, wait_lasts_for_its_patience,
                            wait_ends_when_something_arrives, wait_ends_when_there_is_room_again,
                            wait_sleeps_while_other_bytes_lie_unread,
                            wait_ends_at_once_after_news_that_a_call_for_another_peer_has_seen,
                            a_full_stream_holds_up_no_other, delivers_what_a_departed_rank_has_sent,
                            reports_a_departed_rank_by_name, can_be_destroyed_with_unread_bytes, goes_on_after_a_move);

}  // namespace rondo::testing
