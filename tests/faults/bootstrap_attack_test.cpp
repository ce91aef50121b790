#include "../multi/bootstrap_job.hpp"

#include <latch>
#include <random>
#include <sys/resource.h>

namespace {

using namespace bootstrap_test;
using rondo::failure;

/// A connection of someone who does not belong to the job.
class intruder {
 public:
  explicit intruder(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0;
  }
  intruder(intruder&& other) noexcept : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_) {}
  ~intruder() {
    if (fd_ >= 0) ::close(fd_);
  }

  bool connected() const { return connected_; }
  void send(std::string_view bytes) const {
    (void)!::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  /// Whether the other side hangs up within the limit.
  bool is_dropped(std::chrono::milliseconds limit) const {
    timeval const patience{limit.count() / 1000, limit.count() % 1000 * 1000};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    char bytes[512];
    ssize_t n;
    while ((n = ::recv(fd_, bytes, sizeof bytes, 0)) > 0) {}
    return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }

 private:
  int fd_;
  bool connected_ = false;
};

std::string random_bytes(std::mt19937& random, std::size_t n) {
  std::string bytes(n, '\0');
  for (auto& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

/// What a rank sends first, and mutations of it.
std::string hello(std::mt19937& random) {
  using namespace rondo::detail;
  auto const payload = greeting(random_bytes(random, nonce_size));
  return std::string(packer{}
                         .number(static_cast<std::uint32_t>(std::string_view(payload).size()))
                         .number(static_cast<std::uint32_t>(message::hello))
                         .number(std::uint64_t{0})
                         .raw(payload));
}

TEST(bootstrap_attack, four_ranks_join_under_random_bytes_and_half_open_connections) {
  job const j(4);
  std::mt19937 random(7);
  std::vector<intruder> half_open;
  for (int i = 0; i < 200; ++i) half_open.emplace_back(j.port());

  std::thread attack([&] {
    for (int i = 0; i < 1000; ++i) {
      intruder const one(j.port());
      auto const genuine = hello(random);
      switch (i % 4) {
        case 0: one.send(random_bytes(random, 1 + random() % 600)); break;
        case 1: one.send(genuine.substr(0, random() % genuine.size())); break;
        case 2: one.send(genuine + random_bytes(random, random() % 400)); break;
        default: {
          auto mutated = genuine;
          for (int k = 0; k < 3; ++k) mutated[random() % mutated.size()] = static_cast<char>(random());
          one.send(mutated);
        }
      }
    }
  });
  auto const start = clock::now();
  std::vector<double> took(4);
  expect_none(on_threads(4, [&](int r) {
    std::this_thread::sleep_for(r * 50ms);
    auto const g = j.join(r);
    took[static_cast<std::size_t>(r)] = seconds_since(start);
    EXPECT_EQ(g->exchange(std::to_string(r), clock::now() + 10s)[3], "3");
    EXPECT_FALSE(g->failed());
  }));
  attack.join();
  for (auto const t : took) EXPECT_LT(t, 5);
  for (auto const& one : half_open) EXPECT_TRUE(one.connected());
}

TEST(bootstrap_attack, a_running_job_shrugs_off_strangers) {
  job const j(3);
  std::mt19937 random(8);
  expect_none(on_threads(3, [&](int r) {
    auto const g = j.join(r);
    for (int i = 0; i < 50; ++i) {
      if (r == 1)
        intruder(j.port()).send(i % 2 ? "GET / HTTP/1.1\r\n\r\n" : std::string("\x16\x03\x01\x02\x00\x01", 6));
      g->exchange("", clock::now() + 10s);
    }
    EXPECT_FALSE(g->failed());
  }));
}

TEST(bootstrap_attack, an_announced_length_is_not_believed) {
  using namespace rondo::detail;
  job const j(2);
  expect_none(on_threads(2, [&](int r) {
    auto const g = j.join(r);
    if (r == 1) {
      intruder const greedy(j.port());
      greedy.send(packer{}.number(std::uint32_t{0xffffffff}).number(std::uint32_t{0}).number(std::uint64_t{0}));
      EXPECT_TRUE(greedy.is_dropped(2s));
      intruder const impatient(j.port());  // a member's frame before any proof
      impatient.send(packer{}
                         .number(std::uint32_t{0})
                         .number(static_cast<std::uint32_t>(message::goodbye))
                         .number(std::uint64_t{0}));
      EXPECT_TRUE(impatient.is_dropped(2s));
    }
    g->exchange("", clock::now() + 10s);
    EXPECT_FALSE(g->failed());
  }));
}

TEST(bootstrap_attack, a_recorded_proof_is_worth_nothing_later) {
  using namespace rondo::detail;
  auto const first = prove("token", "rank", std::string(32, 'a'), std::string(32, 'b'), "me");
  EXPECT_NE(first, prove("token", "rank", std::string(32, 'a'), std::string(32, 'c'), "me"));
  EXPECT_NE(first, prove("token", "coordinator", std::string(32, 'a'), std::string(32, 'b'), "me"));
  EXPECT_NE(first, prove("token", "rank", std::string(32, 'a'), std::string(32, 'b'), "you"));
  EXPECT_NE(first, prove("other", "rank", std::string(32, 'a'), std::string(32, 'b'), "me"));
  EXPECT_NE(fresh_nonce(), fresh_nonce());
}

TEST(bootstrap_attack, a_false_rank_0_is_found_out) {
  using namespace rondo::detail;
  job const j(2);
  std::thread liar([&] {  // accepts every proof without knowing the token
    for (int served = 0; served < 2;) {
      file_descriptor fd(::accept4(j.rank(0).listen_fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd) continue;
      frame_stream stream(std::move(fd));
      while (auto const f = await(stream, clock::now() + 2s)) {
        if (f->kind == message::hello) stream.push(message::challenge, 0, greeting(fresh_nonce()));
        if (f->kind == message::proof) {
          packer self;
          identity::own().pack(self);
          stream.push(message::welcome, 0, packer{}.text(self).raw(std::string(sizeof(digest), '?')));
        }
      }
      if (++served == 2) break;
    }
  });
  for (int i = 0; i < 2; ++i) {
    try {
      j.join(1, 1ms);
      ADD_FAILURE() << "joined a stranger";
    } catch (rondo::connect_error const& e) {
      EXPECT_TRUE(std::string(e.what()).find("does not know the job token") != std::string::npos ||
                  std::string(e.what()).find("no rondo answered") != std::string::npos)
          << e.what();
    }
  }
  liar.join();
}

TEST(bootstrap_attack, random_frames_from_a_member_fail_the_job_and_nothing_else) {
  using namespace rondo::detail;
  std::mt19937 random(9);
  for (int i = 0; i < 20; ++i) {
    job const j(3);
    std::latch joined(3);
    expect_none(on_threads(3, [&](int r) {
      if (r == 2) {
        auto stream = std::move(knock(j.rank(2), clock::now() + 10s).first);
        stream.push(message::contribute, 0, packer{}.number(std::uint64_t{1}).text(""));
        while (auto const f = await(stream, clock::now() + 10s))
          if (f->kind == message::gathered) break;
        joined.arrive_and_wait();
        for (int k = 0; k < 20; ++k)
          stream.push(static_cast<message>(random() % 13), random() % 2, random_bytes(random, random() % 40));
        while (await(stream, clock::now() + 1s)) {}
        return;
      }
      auto const g = j.join(r);
      joined.arrive_and_wait();
      EXPECT_TRUE(fails_within(*g, 2s));
    }));
  }
}

class deaths : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(of, deaths, testing::Values(0, 1, 3));

TEST_P(deaths, a_killed_rank_is_named_on_all_others_within_a_second) {
  int const victim = GetParam();
  job const j(4);
  std::vector<process> ranks;
  for (int r = 0; r < 4; ++r)
    ranks.emplace_back([&, r] {
      auto const g = j.join(r);
      auto const part = g->split(r % 2, 0, clock::now() + 10s);
      g->exchange("", clock::now() + 10s);
      auto const start = clock::now();
      if (r == victim) ::kill(::getpid(), SIGKILL);
      if (!fails_within(*g, 3s)) return 1;
      if (seconds_since(start) > 1) return 2;
      if (g->verdict().why != failure::kind::peer_lost || g->verdict().rank != victim) return 3;
      std::this_thread::sleep_for(100ms);
      bool const concerned = r % 2 == victim % 2;
      if (part->failed() != concerned) return 4;
      if (concerned && part->verdict().rank != victim / 2) return 5;
      std::this_thread::sleep_for(500ms);  // to those that have yet to look, who leaves would be lost too
      auto const end = clock::now();
      return g->verdict().what.find("died") == std::string::npos ? 6 : seconds_since(end) > 1 ? 7 : 0;
    });
  for (int r = 0; r < 4; ++r) EXPECT_EQ(ranks[static_cast<std::size_t>(r)].wait(), r == victim ? -SIGKILL : 0) << r;
}

TEST_P(deaths, a_stopped_rank_is_named_by_the_report_of_a_deadline) {
  int const victim = GetParam();
  job const j(4);
  std::vector<process> ranks;
  for (int r = 0; r < 4; ++r)
    ranks.emplace_back([&, r] {
      auto const g = j.join(r);
      g->entered(3);
      g->exchange("", clock::now() + 10s);
      if (r == victim) {
        ::raise(SIGSTOP);
        return 0;
      }
      std::this_thread::sleep_for(200ms);
      auto const start = clock::now();
      g->report({failure::kind::deadline, (victim + 1) % 4, "call 3 is late"});
      if (seconds_since(start) > 1.2) return 1;
      if (!g->failed()) return 2;
      if (g->verdict().why != failure::kind::deadline) return 3;
      return g->verdict().rank == victim && g->verdict().what.find("does not answer") != std::string::npos ? 0 : 4;
    });
  for (int r = 0; r < 4; ++r) {
    if (r != victim) { EXPECT_EQ(ranks[static_cast<std::size_t>(r)].wait(), 0) << r; }
  }
}

TEST(bootstrap_attack, a_forked_worker_does_not_hide_the_death_of_its_rank) {
  for (int const victim : {0, 1}) {
    job const j(2);
    process rank([&] {
      auto const g = j.join(victim);
      auto const worker = ::fork();
      if (worker == 0) {
        ::alarm(5);
        ::pause();
      }
      g->exchange(std::to_string(worker), clock::now() + 10s);
      ::kill(::getpid(), SIGKILL);
      return 0;
    });
    auto const g = j.join(1 - victim);
    auto const worker = std::stoi(g->exchange("", clock::now() + 10s)[static_cast<std::size_t>(victim)]);
    EXPECT_TRUE(fails_within(*g, 1s));
    EXPECT_EQ(g->verdict().rank, victim);
    EXPECT_EQ(::kill(worker, SIGKILL), 0);
    EXPECT_EQ(rank.wait(), -SIGKILL);
  }
}

TEST(bootstrap_attack, a_rank_that_dies_while_others_still_join_ends_the_wait) {
  job const j(3);
  process mortal([&] {
    std::thread([&] { std::this_thread::sleep_for(300ms), ::kill(::getpid(), SIGKILL); }).detach();
    j.join(1);
    return 0;
  });
  auto const start = clock::now();
  try {
    j.join(0);
    ADD_FAILURE() << "joined without ranks 1 and 2";
  } catch (rondo::connect_error const& e) {
    EXPECT_EQ(e.rank(), 1);
    EXPECT_NE(std::string(e.what()).find("rank 1 (pid "), std::string::npos) << e.what();
  }
  EXPECT_LT(seconds_since(start), 5);
  EXPECT_EQ(mortal.wait(), -SIGKILL);
}

TEST(bootstrap_attack, few_descriptors_delay_nobody_for_ever) {
  job const j(2);
  process crowded([&] {
    rlimit const few{40, 40};
    ::setrlimit(RLIMIT_NOFILE, &few);
    auto const g = j.join(0);
    g->exchange("", clock::now() + 10s);
    return g->failed() ? 1 : 0;
  });
  std::vector<intruder> crowd;
  for (int i = 0; i < 100; ++i) crowd.emplace_back(j.port());
  auto const g = j.join(1);
  g->exchange("", clock::now() + 10s);
  EXPECT_EQ(crowded.wait(), 0);
}

}  // namespace
