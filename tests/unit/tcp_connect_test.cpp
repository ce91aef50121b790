#include "../conformance/ranks.hpp"
#include <rondo/transports/in_process_group.hpp>
#include <rondo/transports/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <mutex>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace rondo::testing {
namespace {

using namespace std::chrono_literals;
using detail::tcp_greeting;
using detail::tcp_socket;
using detail::tcp_wiring;

/// A group whose first exchange can be tampered with.
class tampered final : public group {
 public:
  std::function<std::string(std::string)> say = [](std::string text) { return text; };
  std::function<void(std::vector<std::string> const&)> hear = [](auto const&) {};

  explicit tampered(std::shared_ptr<group> inside)
      : group(inside->rank(), inside->size()), inside_(std::move(inside)) {}

  std::vector<std::string> exchange(std::string_view mine, clock::time_point deadline) override {
    if (std::exchange(wired_, true)) return inside_->exchange(mine, deadline);
    auto const texts = inside_->exchange(say(std::string(mine)), deadline);
    hear(texts);
    return texts;
  }
  std::shared_ptr<group> split(int, int, clock::time_point) override { return nullptr; }
  void report(failure why) noexcept override { inside_->report(std::move(why)); }
  std::optional<std::uint64_t> departed(rank_t rank) const noexcept override { return inside_->departed(rank); }

 private:
  std::shared_ptr<group> inside_;
  bool wired_ = false;
};

std::vector<std::shared_ptr<tampered>> tampered_world(int n) {
  std::vector<std::shared_ptr<tampered>> groups;
  for (auto const& g : in_process_group::make(n)) groups.push_back(std::make_shared<tampered>(g));
  return groups;
}

/// Connects n ranks, each with its own options, and lets all of them talk to each other.
void expect_connection(std::vector<std::shared_ptr<tampered>> const& groups, tcp_options const& options = {}) {
  int const n = static_cast<int>(groups.size());
  on_ranks(n, [&](rank_t r) {
    auto x = tcp::connect(groups[static_cast<std::size_t>(r)], options);
    std::vector<rank_t> peers;
    for (rank_t q = 0; q < n; ++q)
      if (q != r) peers.push_back(q);
    auto const in = exchange(x, peers, stream(static_cast<unsigned>(r), 5000));
    for (std::size_t i = 0; i < peers.size(); ++i) EXPECT_EQ(in[i], stream(static_cast<unsigned>(peers[i]), 5000));
  });
}

/// Expects connect_error on every rank, blaming `culprit` and holding all `parts`.
void expect_refusal(std::vector<std::shared_ptr<tampered>> const& groups, rank_t culprit,
                    std::vector<std::string> const& parts, std::function<tcp_options(rank_t)> const& options,
                    std::chrono::milliseconds limit = 20s) {
  on_ranks(static_cast<int>(groups.size()), [&](rank_t r) {
    try {
      tcp::connect(groups[static_cast<std::size_t>(r)], options(r), group::clock::now() + limit);
      ADD_FAILURE() << "rank " << r << " was connected";
    } catch (connect_error const& e) {
      EXPECT_EQ(e.rank(), culprit) << e.what();
      for (auto const& part : parts)
        EXPECT_NE(std::string_view(e.what()).find(part), std::string_view::npos) << e.what();
    }
  });
}

tcp_options bound_to(std::string address) {
  tcp_options options;
  options.bind = std::move(address);
  return options;
}

tcp_options filtered_by(std::string interfaces) {
  tcp_options options;
  options.interfaces = std::move(interfaces);
  return options;
}

/// A socket that listens and never accepts.
std::pair<tcp_socket, std::string> deaf_listener() {
  auto socket = tcp_socket::open(AF_INET);
  EXPECT_TRUE(socket.bind(*ip_address::parse("127.0.0.1"), 0) && socket.listen());
  auto endpoint = "127.0.0.1 8 " + std::to_string(socket.local_port());
  return {std::move(socket), std::move(endpoint)};
}

std::string with_endpoints(std::string const& wiring, std::string const& lines, bool keep) {
  auto const head = wiring.find('\n');
  return wiring.substr(0, head + 1) + lines + (keep ? wiring.substr(head) : "");
}

TEST(tcp_connect, needs_no_network_for_one_rank) { expect_connection(tampered_world(1)); }

TEST(tcp_connect, uses_one_address_only_if_told) {
  for (std::string const address : {"127.0.0.1", "::1"}) {
    auto const groups = tampered_world(3);
    groups[0]->hear = [&](auto const& texts) {
      for (auto const& text : texts) {
        auto const w = tcp_wiring::decode(text, 0);
        ASSERT_EQ(w.endpoints.size(), 1u);
        EXPECT_EQ(w.endpoints[0].address.to_string(), address);
      }
    };
    expect_connection(groups, bound_to(address));
  }
}

TEST(tcp_connect, loopback_is_not_paced_and_other_addresses_keep_what_the_host_chose) {
  auto const congestion_control = [](tcp_socket const& socket) {
    char name[16] = {};
    socklen_t size = sizeof name;
    EXPECT_EQ(::getsockopt(socket.descriptor(), IPPROTO_TCP, TCP_CONGESTION, name, &size), 0);
    return std::string(name);
  };
  auto const of_the_host = congestion_control(tcp_socket::open(AF_INET));
  for (auto const& a : interface_addresses()) {
    if (a.address.link_local()) continue;
    auto const groups = in_process_group::make(2);
    auto const options = bound_to(a.address.to_string());
    on_ranks(2, [&](rank_t r) {
      auto& group = *groups[static_cast<std::size_t>(r)];
      detail::tcp_mesh mesh(group, options);
      auto const deadline = group::clock::now() + 20s;
      std::vector<tcp_wiring> wirings;
      for (auto const& text : group.exchange(mesh.listen().encode(), deadline))
        wirings.push_back(tcp_wiring::decode(text, 0));
      EXPECT_EQ(mesh.connect(wirings, deadline), "");
      EXPECT_EQ(congestion_control(mesh.take(1 - r).front()), a.address.loopback() ? "reno" : of_the_host)
          << "rank " << r << " at " << a.address.to_string();
    });
  }
}

TEST(tcp_connect, obeys_the_filter_in_the_options_and_in_the_environment) {
  auto const only_loopback = [](auto const& texts) {
    for (auto const& text : texts)
      for (auto const& e : tcp_wiring::decode(text, 0).endpoints) EXPECT_TRUE(e.address.loopback());
  };
  auto groups = tampered_world(2);
  groups[1]->hear = only_loopback;
  expect_connection(groups, filtered_by("=lo"));
  ::setenv("RONDO_SOCKET_IFNAME", "=lo", 1);
  groups = tampered_world(2);
  groups[1]->hear = only_loopback;
  expect_connection(groups);
  ::unsetenv("RONDO_SOCKET_IFNAME");
}

TEST(tcp_connect, gets_past_addresses_that_do_not_work) {
  auto const [deaf, endpoint] = deaf_listener();
  auto const groups = tampered_world(3);
  for (auto const& g : groups)
    g->say = [&, lines = "127.0.0.1 8 1\n" + endpoint + "\n::1 128 1"](auto text) {
      return with_endpoints(text, lines, true);
    };
  auto const start = std::chrono::steady_clock::now();
  expect_connection(groups);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 15s);
}

TEST(tcp_connect, names_the_pair_and_the_addresses_it_tried) {
  auto const [deaf, endpoint] = deaf_listener();
  auto const groups = tampered_world(3);
  groups[1]->say = [&, lines = "127.0.0.1 8 1\n" + endpoint](auto text) { return with_endpoints(text, lines, false); };
  expect_refusal(
      groups, 2, {"rank 2 cannot reach rank 1", "127.0.0.1:1 (Connection refused)", "(Connection timed out)"},
      [](rank_t) { return tcp_options{}; }, 4s);
}

TEST(tcp_connect, refuses_different_options) {
  expect_refusal(tampered_world(3), 1, {"rank 1", "streams"}, [](rank_t r) {
    tcp_options options;
    options.streams = r == 1 ? 2 : 1;
    return options;
  });
}

TEST(tcp_connect, refuses_senseless_options_on_every_rank) {
  auto const on_rank_2 = [](tcp_options const& bad) {
    return [bad](rank_t r) { return r == 2 ? bad : tcp_options{}; };
  };
  expect_refusal(tampered_world(3), 2, {"rank 2 cannot use TCP", "\"=nosuch0\"", "lo ("},
                 on_rank_2(filtered_by("=nosuch0")));
  expect_refusal(tampered_world(3), 2, {"\"localhost\"", "numeric"}, on_rank_2(bound_to("localhost")));
  expect_refusal(tampered_world(3), 2, {"203.0.113.77", "Cannot assign"}, on_rank_2(bound_to("203.0.113.77")));
  tcp_options none;
  none.streams = 0;
  expect_refusal(tampered_world(3), 2, {"at least one stream"}, on_rank_2(none));
}

TEST(tcp_connect, says_how_many_descriptors_it_needs) {
  ::rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  ::rlimit const few{100, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  expect_refusal(tampered_world(3), 0, {"200 file descriptors", "limit is 100"}, [](rank_t) {
    tcp_options options;
    options.streams = 100;
    return options;
  });
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST(tcp_connect, ends_when_the_group_has_a_verdict) {
  auto const groups = in_process_group::make(3);
  on_ranks(3, [&](rank_t r) {
    auto const& g = groups[static_cast<std::size_t>(r)];
    if (r == 2) {
      g->exchange(tcp_wiring{1, tcp_options{}.stripe, "-", {}, {{*ip_address::parse("127.0.0.1"), 8, 1}}}.encode(),
                  group::clock::now() + 10s);
      return g->report({failure::kind::peer_lost, 2, "rank 2 died"});
    }
    EXPECT_THROW(tcp::connect(g), peer_lost);
  });
}

/// The descriptors of this process that satisfy a condition.
std::vector<int> descriptors(std::function<bool(int)> const& condition) {
  std::vector<int> found;
  for (auto const& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    int const fd = std::stoi(entry.path().filename());
    if (condition(fd)) found.push_back(fd);
  }
  return found;
}

bool is_tcp_listener(int fd) {
  int listening = 0, domain = 0;
  socklen_t size = sizeof listening;
  return ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening != 0 &&
         ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain != AF_UNIX;
}

TEST(tcp_connect, drops_strangers) {
  auto const groups = tampered_world(4);
  std::vector<tcp_socket> strangers;
  groups[3]->hear = [&](auto const& texts) {
    for (rank_t q = 0; q < 4; ++q) {
      auto const w = tcp_wiring::decode(texts[static_cast<std::size_t>(q)], q);
      auto const call = [&](std::span<std::byte const> words) {
        auto const& e = w.endpoints.front();
        auto& socket = strangers.emplace_back(tcp_socket::open(e.address.family()));
        socket.connect(e.address, e.port);
        pollfd connected{socket.descriptor(), POLLOUT, 0};
        ::poll(&connected, 1, 1000);
        socket.send(words);
      };
      for (int i = 0; i < 30; ++i) call({});
      for (unsigned i = 0; i < 30; ++i) call(stream(i, i + 1));
      call(tcp_greeting{w.secret, q, 0}.encode());
      call(tcp_greeting{w.secret, -1, 0}.encode());
      call(tcp_greeting{w.secret, 4, 0}.encode());
      call(tcp_greeting{w.secret, 3, 1}.encode());
      call(tcp_greeting{w.secret, 3, -1}.encode());
    }
  };
  expect_connection(groups);
  for (auto const& s : strangers) {
    pollfd answer{s.descriptor(), POLLIN, 0};
    EXPECT_EQ(::poll(&answer, 1, 2000), 1);
    std::byte one{};
    EXPECT_LE(s.receive({&one, 1}), 0) << "a stranger got an answer";
  }
}

TEST(tcp_connect, takes_no_connection_that_its_dialer_gave_up) {
  auto const groups = tampered_world(2);
  groups[1]->hear = [&](auto const& texts) {
    auto const w = tcp_wiring::decode(texts[0], 0);
    auto const& e = w.endpoints.front();
    auto const early = tcp_socket::open(e.address.family());
    early.connect(e.address, e.port);
    pollfd answer{early.descriptor(), POLLOUT, 0};
    ::poll(&answer, 1, 1000);
    early.send(tcp_greeting{w.secret, 1, 0}.encode());
    answer.events = POLLIN;
    EXPECT_EQ(::poll(&answer, 1, 5000), 1);
    bytes got(100);
    EXPECT_EQ(early.receive(got), 16);
  };
  expect_connection(groups);
}

TEST(tcp_connect, leaves_neither_listeners_nor_descriptors_behind) {
  auto const count = [] { return descriptors([](int) { return true; }).size(); };
  std::optional<std::size_t> before;
  for (int i = 0; i < 10; ++i) {
    auto const groups = in_process_group::make(3);
    on_ranks(3, [&](rank_t r) {
      auto x = tcp::connect(groups[static_cast<std::size_t>(r)]);
      std::vector<rank_t> const peers{(r + 1) % 3, (r + 2) % 3};
      exchange(x, peers, stream(0, 10));
      EXPECT_TRUE(descriptors(is_tcp_listener).empty());
      exchange(x, peers, stream(0, 10));
    });
    if (!before) before = count();
    EXPECT_EQ(count(), *before);
  }
}

#ifndef __SANITIZE_THREAD__  // which cannot follow a process that forks while it has threads
TEST(tcp_connect, does_not_notice_what_a_forked_child_destroys) {
  auto const groups = in_process_group::make(2);
  on_ranks(2, [&](rank_t r) {
    std::optional x(tcp::connect(groups[static_cast<std::size_t>(r)]));
    exchange(*x, {1 - r}, stream(0, 1000));
    if (r == 0) {
      auto const child = ::fork();
      if (child == 0) {
        x.reset();
        ::_exit(0);
      }
      int status = 1;
      EXPECT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(exchange(*x, {1 - r}, stream(1, 100'000))[0], stream(1, 100'000));
  });
}
#endif

}  // namespace
}  // namespace rondo::testing
