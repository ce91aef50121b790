#include <rondo/transports/tcp/handshake.hpp>
#include <rondo/transports/tcp/wiring.hpp>

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace rondo::detail {
namespace {

tcp_endpoint at(char const* address, int prefix, std::uint16_t port) {
  return {ip_address::parse(address).value(), prefix, port};
}

tcp_wiring example() {
  return {3, 65536, "boot/1", tcp_wiring::make_secret(), {at("10.0.0.1", 24, 4711), at("fd00::1", 64, 65535)}};
}

TEST(tcp_wiring, survives_its_text) {
  auto const w = example(), again = tcp_wiring::decode(w.encode(), 0);
  EXPECT_EQ(again.streams, 3);
  EXPECT_EQ(again.stripe, 65536u);
  EXPECT_EQ(again.machine, "boot/1");
  EXPECT_EQ(again.secret, w.secret);
  ASSERT_EQ(again.endpoints.size(), 2u);
  EXPECT_EQ(again.endpoints[0].to_string(), "10.0.0.1:4711");
  EXPECT_EQ(again.endpoints[1].to_string(), "[fd00::1]:65535");
  EXPECT_EQ(again.endpoints[1].prefix, 64);
}

TEST(tcp_wiring, refuses_a_truncated_text) {
  auto const text = example().encode();
  auto const head = text.substr(0, text.find('\n') + 1);
  for (std::size_t n = 0; n <= head.size(); ++n)
    EXPECT_THROW(tcp_wiring::decode(std::string_view(text).substr(0, n), 7), connect_error) << n;
  for (char const* line :
       {"10.0.0.1", "10.0.0.1 ", "10.0.0.1 24", "10.0.0.1 24 ", "10.0.0.1 24 4711\n10.0.0", " 24 4711"})
    EXPECT_THROW(tcp_wiring::decode(head + line, 7), connect_error) << line;
}

TEST(tcp_wiring, names_the_rank_that_sent_nonsense) {
  for (std::string_view const text :
       {"", "\n", "0 1 m 00", "1 1 m 000102030405060708090a0b0c0d0e0f",
        "1 1 m 000102030405060708090a0b0c0d0e0g\n10.0.0.1 8 1", "1 1 m 000102030405060708090a0b0c0d0e0f\n10.0.0.1 8 0",
        "1 1 m 000102030405060708090a0b0c0d0e0f\n10.0.0.1 8 65536", "1 1 m 000102030405060708090a0b0c0d0e0f\nhost 8 1",
        "1 -1 m 000102030405060708090a0b0c0d0e0f\n10.0.0.1 8 1"}) {
    try {
      tcp_wiring::decode(text, 7);
      ADD_FAILURE() << text;
    } catch (connect_error const& e) { EXPECT_EQ(e.rank(), 7); }
  }
}

TEST(tcp_wiring, makes_a_new_secret_each_time) { EXPECT_NE(tcp_wiring::make_secret(), tcp_wiring::make_secret()); }

std::string route(tcp_wiring const& from, tcp_wiring const& to) {
  std::string ports;
  for (auto const& e : from.route_to(to)) ports += std::to_string(e.port);
  return ports;
}

TEST(tcp_wiring, dials_loopback_first_on_the_same_machine_and_last_elsewhere) {
  tcp_wiring const to{1, 1, "here", {}, {at("10.0.0.1", 24, 1), at("192.0.2.1", 24, 2), at("127.0.0.1", 8, 3)}};
  EXPECT_EQ(route({1, 1, "here", {}, {at("192.0.2.9", 24, 9)}}, to), "321");
  EXPECT_EQ(route({1, 1, "elsewhere", {}, {at("192.0.2.9", 24, 9), at("127.0.0.1", 8, 9)}}, to), "213");
  EXPECT_EQ(route({1, 1, "elsewhere", {}, {at("10.0.0.9", 8, 9)}}, to), "123");
}

TEST(tcp_wiring, does_not_take_two_unknown_machines_for_one) {
  tcp_wiring const to{1, 1, "-", {}, {at("127.0.0.1", 8, 3), at("10.0.0.1", 24, 1)}};
  EXPECT_EQ(route({1, 1, "-", {}, {at("10.0.0.9", 24, 9)}}, to), "13");
}

TEST(tcp_greeting, survives_its_bytes) {
  tcp_greeting const g{tcp_wiring::make_secret(), 70'000, 3};
  auto const bytes = g.encode();
  auto const again = tcp_greeting::decode(bytes);
  EXPECT_EQ(again.secret, g.secret);
  EXPECT_EQ(again.rank, 70'000);
  EXPECT_EQ(again.stream, 3);
}

TEST(same_secret, sees_a_difference_in_any_byte) {
  auto const a = tcp_wiring::make_secret();
  EXPECT_TRUE(same_secret(a, a));
  for (std::size_t i = 0; i < a.size(); ++i) {
    auto b = a;
    b[i] ^= std::byte{1};
    EXPECT_FALSE(same_secret(a, b)) << i;
  }
}

}  // namespace
}  // namespace rondo::detail
