#include "transport_suite.hpp"
#include <rondo/transports/faults.hpp>
#include <rondo/transports/in_process_group.hpp>
#include <rondo/transports/tcp.hpp>

namespace rondo::testing {
namespace {

template <class Wrap>
struct disturbed {
  static constexpr bool notices_departure = true;

  template <class Body>
  static void world(int n, Body body) {
    auto const groups = in_process_group::make(n);
    on_ranks(n, [&](rank_t r) {
      auto x = Wrap{}(tcp::connect(groups[static_cast<std::size_t>(r)]));
      body(r, x);
    });
  }
};

struct trickle {
  auto operator()(tcp x) const { return trickling(std::move(x), 5000, 42); }
};
struct delay {
  auto operator()(tcp x) const { return delayed(std::move(x), std::chrono::microseconds(300)); }
};
struct cut_late {
  auto operator()(tcp x) const { return cut(std::move(x), 0, std::size_t{1} << 40); }
};

using disturbances = ::testing::Types<disturbed<trickle>, disturbed<delay>, disturbed<cut_late>>;
INSTANTIATE_TYPED_TEST_SUITE_P(faults, transport_suite, disturbances);

TEST(trickling, moves_no_more_than_it_was_told) {
  disturbed<trickle>::world(2, [](rank_t r, auto& whole) {
    trickling x(std::move(whole), 3, 1);
    rank_t const peer = 1 - r;
    auto const out = stream(0, 200);
    std::size_t sent = 0, received = 0;
    patience const p;
    while (sent < out.size() || received < out.size()) {
      auto const w = x.write(peer, std::span(out).subspan(sent), false);
      bytes in(50);
      auto const n = x.read(peer, in);
      EXPECT_LE(w, 3u);
      EXPECT_LE(n, 3u);
      for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(in[i], out[received + i]);
      sent += w;
      received += n;
      if (w + n == 0) p.pause(x);
    }
  });
}

TEST(trickling, shows_little_more_than_is_needed) {
  disturbed<trickle>::world(2, [](rank_t r, auto& whole) {
    trickling x(std::move(whole), 3, 1);
    if (r == 0) return send(x, 1, stream(0, 1000));
    patience const p;
    for (int i = 0; i < 10; ++i) {
      while (x.readable(0, 100).empty()) p.pause(x);
      auto const got = x.readable(0, 100);
      EXPECT_GE(got.size(), 100u);
      EXPECT_LE(got.size(), 103u);
      EXPECT_EQ(got.front(), stream(0, 1000)[100 * static_cast<std::size_t>(i)]);
      x.consume(0, 100);
    }
  });
}

TEST(delayed, keeps_bytes_back_for_a_while) {
  using namespace std::chrono;
  disturbed<trickle>::world(2, [](rank_t r, auto& whole) {
    delayed x(std::move(whole), milliseconds(30));
    rank_t const peer = 1 - r;
    auto const start = steady_clock::now();
    for (int i = 0; i < 3; ++i) {
      if (r == 0) send(x, peer, stream(0, 10));
      EXPECT_EQ(receive(x, peer, 10), stream(0, 10));
      if (r == 1) send(x, peer, stream(0, 10));
    }
    if (r == 0) { EXPECT_GE(steady_clock::now() - start, milliseconds(6 * 30)); }
  });
}

TEST(cut, loses_one_peer_after_so_many_bytes) {
  disturbed<trickle>::world(3, [](rank_t r, auto& whole) {
    if (r != 0) {
      exchange(whole, {0}, stream(0, 100));
      return exchange(whole, {3 - r}, stream(0, 100)), void();
    }
    cut x(std::move(whole), 1, 150);
    bytes one(1);
    try {
      exchange(x, {1}, stream(0, 100));
      ADD_FAILURE() << "not cut";
    } catch (peer_lost const& e) { EXPECT_EQ(e.rank(), 1); }
    EXPECT_THROW(x.write(1, one, false), peer_lost);
    EXPECT_THROW(x.read(1, one), peer_lost);
    EXPECT_THROW(x.readable(1, 1), peer_lost);
    EXPECT_EQ(exchange(x, {2}, stream(0, 100))[0], stream(0, 100));
  });
}

}  // namespace
}  // namespace rondo::testing
