#include <rondo/transports/interfaces.hpp>

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace rondo {
namespace {

ip_address address(char const* text) { return ip_address::parse(text).value(); }

TEST(ip_address, reads_and_writes_the_numeric_forms) {
  for (std::string const text : {"127.0.0.1", "10.1.2.3", "0.0.0.0", "::1", "fd00::2", "2001:db8::ff:1"})
    EXPECT_EQ(address(text.c_str()).to_string(), text);
  for (char const* text : {"", "localhost", "10.0.0", "10.0.0.256", "fe80::1%eth0", "1.2.3.4:5", "[::1]"})
    EXPECT_FALSE(ip_address::parse(text)) << text;
}

TEST(ip_address, survives_a_socket_address) {
  for (char const* text : {"192.0.2.7", "2001:db8::7"}) {
    sockaddr_storage storage;
    auto const size = address(text).fill(storage, 4711);
    auto* const generic = reinterpret_cast<sockaddr*>(&storage);
    EXPECT_EQ(size, generic->sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    EXPECT_EQ(ip_address::from(generic), address(text));
  }
  sockaddr none{};
  EXPECT_FALSE(ip_address::from(&none));
  EXPECT_FALSE(ip_address::from(nullptr));
}

TEST(ip_address, knows_loopback_and_link_local) {
  EXPECT_TRUE(address("127.0.0.1").loopback());
  EXPECT_TRUE(address("127.255.0.9").loopback());
  EXPECT_TRUE(address("::1").loopback());
  for (char const* text : {"128.0.0.1", "::", "::2", "fd00::1"}) EXPECT_FALSE(address(text).loopback()) << text;
  EXPECT_TRUE(address("fe80::1").link_local());
  EXPECT_TRUE(address("febf::1").link_local());
  EXPECT_FALSE(address("fec0::1").link_local());
  EXPECT_FALSE(address("169.254.0.1").link_local());
}

TEST(ip_address, compares_subnets_bit_by_bit) {
  EXPECT_TRUE(address("10.1.2.3").shares(24, address("10.1.2.200")));
  EXPECT_FALSE(address("10.1.2.3").shares(24, address("10.1.3.3")));
  EXPECT_TRUE(address("10.1.2.3").shares(23, address("10.1.3.3")));
  EXPECT_FALSE(address("10.1.2.3").shares(32, address("10.1.2.2")));
  EXPECT_TRUE(address("10.1.2.3").shares(0, address("99.1.2.3")));
  EXPECT_TRUE(address("fd00::1").shares(64, address("fd00::ffff:1")));
  EXPECT_FALSE(address("fd00::1").shares(128, address("fd00::2")));
  EXPECT_FALSE(address("::").shares(0, address("0.0.0.0")));
}

TEST(ip_address, measures_netmasks) {
  EXPECT_EQ(address("255.255.255.255").leading_ones(), 32);
  EXPECT_EQ(address("255.255.254.0").leading_ones(), 23);
  EXPECT_EQ(address("0.0.0.0").leading_ones(), 0);
  EXPECT_EQ(address("ffff:ffff:ffff:fffe::").leading_ones(), 63);
}

TEST(interface_filter, default_is_neither_loopback_nor_virtual) {
  interface_filter const f;
  EXPECT_TRUE(f.is_default());
  for (char const* name : {"eth0", "ens5", "enp1s0f0", "ib0", "wlan0", "bond0", "br0", "tailscale0", "loop"})
    EXPECT_TRUE(f.accepts(name)) << name;
  for (char const* name : {"lo", "docker0", "br-1f2e", "veth12ab", "virbr0", "cni0", "flannel.1", "cali123"})
    EXPECT_FALSE(f.accepts(name)) << name;
}

TEST(interface_filter, lists_prefixes) {
  interface_filter const f("eth,ib");
  for (char const* name : {"eth0", "eth17", "ib0", "eth"}) EXPECT_TRUE(f.accepts(name)) << name;
  for (char const* name : {"et", "xeth0", "lo", ""}) EXPECT_FALSE(f.accepts(name)) << name;
}

TEST(interface_filter, lists_exact_names) {
  interface_filter const f("=eth0,ib1");
  for (char const* name : {"eth0", "ib1"}) EXPECT_TRUE(f.accepts(name)) << name;
  for (char const* name : {"eth01", "eth", "ib10", "=eth0"}) EXPECT_FALSE(f.accepts(name)) << name;
}

TEST(interface_filter, excludes_prefixes_and_exact_names) {
  interface_filter const prefixes("^docker,lo");
  EXPECT_TRUE(prefixes.accepts("eth0"));
  EXPECT_TRUE(prefixes.accepts("veth0"));
  for (char const* name : {"docker0", "lo", "lo1"}) EXPECT_FALSE(prefixes.accepts(name)) << name;
  interface_filter const exact("^=eth0");
  EXPECT_FALSE(exact.accepts("eth0"));
  EXPECT_TRUE(exact.accepts("eth01"));
}

TEST(interface_filter, ignores_empty_names_and_refuses_empty_lists) {
  interface_filter const f(",eth0,,ib,");
  EXPECT_TRUE(f.accepts("eth0"));
  EXPECT_FALSE(f.accepts("lo"));
  for (char const* text : {",", "^", "=", "^=", "^,,"}) EXPECT_THROW(interface_filter{text}, invalid_argument) << text;
}

TEST(interface_filter, prefers_its_own_variable) {
  ::setenv("NCCL_SOCKET_IFNAME", "ib", 1);
  ::unsetenv("RONDO_SOCKET_IFNAME");
  EXPECT_EQ(interface_filter::from_environment().text(), "ib");
  ::setenv("RONDO_SOCKET_IFNAME", "=eth3", 1);
  EXPECT_EQ(interface_filter::from_environment().text(), "=eth3");
  ::setenv("RONDO_SOCKET_IFNAME", "", 1);
  EXPECT_EQ(interface_filter::from_environment().text(), "ib");
  ::unsetenv("NCCL_SOCKET_IFNAME");
  EXPECT_TRUE(interface_filter::from_environment().is_default());
  ::unsetenv("RONDO_SOCKET_IFNAME");
}

std::vector<std::string> names(std::vector<interface_address> const& all, interface_filter const& filter) {
  std::vector<std::string> chosen;
  for (auto const& a : usable_addresses(all, filter)) chosen.push_back(a.interface + " " + a.address.to_string());
  return chosen;
}

using list = std::vector<std::string>;

interface_address const lo{"lo", address("127.0.0.1"), 8}, lo6{"lo", address("::1"), 128},
    eth{"eth0", address("10.0.0.1"), 24}, eth6{"eth0", address("fd00::1"), 64},
    docker{"docker0", address("172.17.0.1"), 16};

TEST(usable_addresses, puts_loopback_last_by_default) {
  EXPECT_EQ(names({lo, docker, eth, lo6, eth6}, {}), (list{"eth0 10.0.0.1", "eth0 fd00::1", "lo 127.0.0.1", "lo ::1"}));
}

TEST(usable_addresses, falls_back_to_virtual_interfaces_and_to_loopback_alone) {
  EXPECT_EQ(names({lo, docker}, {}), (list{"docker0 172.17.0.1", "lo 127.0.0.1"}));
  EXPECT_EQ(names({lo, lo6}, {}), (list{"lo 127.0.0.1", "lo ::1"}));
}

TEST(usable_addresses, obeys_a_filter_to_the_letter) {
  EXPECT_EQ(names({lo, docker, eth}, interface_filter("docker")), (list{"docker0 172.17.0.1"}));
  EXPECT_EQ(names({lo, docker, eth}, interface_filter("^eth")), (list{"lo 127.0.0.1", "docker0 172.17.0.1"}));
  EXPECT_EQ(names({lo, eth}, interface_filter("=lo")), (list{"lo 127.0.0.1"}));
}

TEST(usable_addresses, says_what_there_is_when_nothing_matches) {
  try {
    usable_addresses({lo, eth}, interface_filter("ib"));
    FAIL();
  } catch (connect_error const& e) {
    std::string const what = e.what();
    for (char const* part : {"\"ib\"", "lo (127.0.0.1)", "eth0 (10.0.0.1)"})
      EXPECT_NE(what.find(part), std::string::npos) << what;
  }
  EXPECT_THROW(usable_addresses({}, {}), connect_error);
}

TEST(interface_addresses, finds_loopback_here) {
  bool found = false;
  for (auto const& a : interface_addresses()) {
    EXPECT_FALSE(a.address.link_local());
    found |= a.interface == "lo" && a.address == address("127.0.0.1") && a.prefix == 8;
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace rondo
