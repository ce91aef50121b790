#include "../conformance/ranks.hpp"
#include "../multi/bootstrap_job.hpp"
#include "../vm/needs_rdma.hpp"
#include <rondo/communicator.hpp>
#include <rondo/ops.hpp>
#include <rondo/transports/in_process_group.hpp>
#include <rondo/transports/verbs.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

using namespace rondo;
using namespace std::chrono_literals;
using bootstrap_test::job;
using bootstrap_test::process;
using clock = std::chrono::steady_clock;

/// What became of a rank that is a process, in memory that it shares with the test.
struct seat {
  std::atomic<int> calls{0};
  std::atomic<bool> ended{false};
  std::atomic<bool> again{false};  ///< the survivors have made a communicator of their own, and it works
  rank_t named = nobody;
  clock::time_point when{};
  std::array<char, 512> what{};
};

class seats {
 public:
  explicit seats(int n) : n_(static_cast<std::size_t>(n)) {
    void* const p = ::mmap(nullptr, n_ * sizeof(seat), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) throw std::bad_alloc();
    all_ = static_cast<seat*>(p);
    for (std::size_t i = 0; i < n_; ++i) new (all_ + i) seat;
  }
  ~seats() { ::munmap(all_, n_ * sizeof(seat)); }
  seats(seats const&) = delete;
  seats& operator=(seats const&) = delete;

  seat& operator[](rank_t r) const noexcept { return all_[r]; }

 private:
  std::size_t n_;
  seat* all_;
};

template <class Done>
bool within(clock::duration limit, Done&& done) {
  for (auto const until = clock::now() + limit; !done();) {
    if (clock::now() > until) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

/// Sums over and over until it fails; notes how.
void sum_for_ever(std::shared_ptr<group> const& g, seat& s, std::chrono::milliseconds deadline) {
  communicator<verbs> comm(g, verbs::connect(g), {.deadline = deadline});
  std::vector<float> data(std::size_t{1} << 18);
  try {
    for (;; ++s.calls) comm.all_reduce(data, sum);
  } catch (error const& e) {
    s.when = clock::now();
    s.named = e.rank();
    std::string(e.what()).copy(s.what.data(), s.what.size() - 1);
    s.ended = true;
  }
}

TEST(verbs_faults, a_killed_rank_is_named_within_three_seconds_and_the_others_go_on_without_it) {
  NEEDS_RDMA();
  constexpr int n = 3;
  for (int repeat = 0; repeat < 20 && !HasFailure(); ++repeat) {
    rank_t const victim = repeat % n;
    SCOPED_TRACE("rank " + std::to_string(victim) + " is killed, round " + std::to_string(repeat));
    seats all(n);
    job first(n), second(n - 1);
    std::vector<process> ranks;
    for (rank_t r = 0; r < n; ++r)
      ranks.emplace_back([&, r] {
        rank_t const later = r < victim ? r : r - 1;
        if (r != 0) first.release();
        if (later != 0 || r == victim) second.release();
        sum_for_ever(first.join(r), all[r], 20s);
        auto const g = second.join(later);
        communicator<verbs> comm(g, verbs::connect(g), {.deadline = 20s});
        std::vector<int> one(1000, 1);
        comm.all_reduce(one, sum);
        all[r].again = std::all_of(one.begin(), one.end(), [](int x) { return x == n - 1; });
        return 0;
      });
    first.release();
    second.release();
    for (rank_t r = 0; r < n; ++r) ASSERT_TRUE(within(60s, [&] { return all[r].calls >= 2; })) << "rank " << r;
    std::this_thread::sleep_for(std::chrono::milliseconds(repeat * 3));
    auto const death = clock::now();
    ranks[static_cast<std::size_t>(victim)].send(SIGKILL);
    for (rank_t r = 0; r < n; ++r) {
      if (r == victim) continue;
      auto const& s = all[r];
      ASSERT_TRUE(within(20s, [&] { return s.ended.load(); })) << "rank " << r << " hangs";
      EXPECT_EQ(s.named, victim) << "rank " << r << ": " << s.what.data();
      EXPECT_LT(s.when - death, 3s) << "rank " << r << ": " << s.what.data();
      EXPECT_EQ(ranks[static_cast<std::size_t>(r)].wait(), 0) << "rank " << r;
      EXPECT_TRUE(s.again) << "rank " << r;
    }
  }
}

/// A rank that is connected with this one and then killed, without a group that tells.
class verbs_alone : public ::testing::Test {
 protected:
  /// Connects, and returns when the peer is dead.
  std::optional<verbs> connect_and_kill() {
    seats all(2);
    job two(2);
    process victim([&] {
      two.release();
      auto const g = two.join(1);
      auto x = verbs::connect(g);
      ++all[1].calls;
      for (;;) x.wait(1s);
      return 0;
    });
    auto const g = two.join(0);
    std::optional<verbs> x(verbs::connect(g));
    EXPECT_TRUE(within(20s, [&] { return all[1].calls > 0; }));
    victim.send(SIGKILL);
    victim.wait();
    return x;
  }

  std::vector<std::byte> const block = std::vector<std::byte>(1000);
};

TEST_F(verbs_alone, learns_of_a_death_by_writing) {
  NEEDS_RDMA();
  auto x = connect_and_kill();
  auto const start = clock::now();
  try {
    while (clock::now() - start < 20s) {
      x->write(1, block, false);
      x->wait(10ms);
    }
    FAIL() << "no error";
  } catch (peer_lost const& e) {
    EXPECT_EQ(e.rank(), 1);
    EXPECT_LT(clock::now() - start, 3s);
    EXPECT_NE(std::string(e.what()).find("rank 1 has left or died: its queue pair failed"), std::string::npos)
        << e.what();
  }
  EXPECT_THROW(x->readable(1, 1), peer_lost);
}

TEST_F(verbs_alone, leaves_a_dead_peer_soon) {
  NEEDS_RDMA();
  auto x = connect_and_kill();
  x->write(1, block, false);
  auto const start = clock::now();
  x.reset();
  EXPECT_LT(clock::now() - start, 1s);
}

TEST(verbs_faults, a_link_that_goes_down_is_an_error_within_the_deadline) {
  NEEDS_RDMA();
  if (!vm_test::rdma_is_promised()) GTEST_SKIP() << "only a guest may have its link taken down";
  auto const device = rondo::detail::verbs_ports(verbs_options{}).ports().front().device->name();
  std::array<char, 64> interface {};
  auto* const file = std::fopen(("/sys/class/infiniband/" + device + "/parent").c_str(), "re");
  ASSERT_TRUE(file);
  ASSERT_EQ(std::fscanf(file, "%63s", interface.data()), 1);
  std::fclose(file);
  auto const link = [&](char const* how) {
    return std::system(("ip link set " + std::string(interface.data()) + " " + how).c_str());
  };
  seats all(2);
  job two(2);
  std::vector<process> ranks;
  for (rank_t r = 0; r < 2; ++r)
    ranks.emplace_back([&, r] {
      if (r != 0) two.release();
      sum_for_ever(two.join(r), all[r], 10s);
      return 0;
    });
  two.release();
  for (rank_t r = 0; r < 2; ++r) ASSERT_TRUE(within(60s, [&] { return all[r].calls >= 2; })) << "rank " << r;
  auto const cut = clock::now();
  ASSERT_EQ(link("down"), 0);
  for (rank_t r = 0; r < 2; ++r) {
    EXPECT_TRUE(within(15s, [&] { return all[r].ended.load(); })) << "rank " << r << " hangs";
    EXPECT_LT(all[r].when - cut, 11s) << all[r].what.data();
    EXPECT_NE(all[r].named, nobody) << all[r].what.data();
  }
  ASSERT_EQ(link("up"), 0);
}

/// A transport that the test keeps a hand on while a communicator has it.
class observed {
 public:
  explicit observed(std::shared_ptr<verbs> x) : x_(std::move(x)) {}

  rank_t rank() const noexcept { return x_->rank(); }
  int size() const noexcept { return x_->size(); }
  std::size_t write(rank_t peer, std::span<std::byte const> bytes, bool more) { return x_->write(peer, bytes, more); }
  std::span<std::byte const> readable(rank_t peer, std::size_t need) { return x_->readable(peer, need); }
  void consume(rank_t peer, std::size_t n) { x_->consume(peer, n); }
  std::size_t read(rank_t peer, std::span<std::byte> bytes) { return x_->read(peer, bytes); }
  void wait(std::chrono::nanoseconds patience) { x_->wait(patience); }

 private:
  std::shared_ptr<verbs> x_;
};

/// Pages of this process that are in memory.
long resident_pages() {
  long all = 0, resident = 0;
  auto* const file = std::fopen("/proc/self/statm", "re");
  if (!file || std::fscanf(file, "%ld %ld", &all, &resident) != 2) ADD_FAILURE() << "no /proc/self/statm";
  if (file) std::fclose(file);
  return resident;
}

TEST(verbs_faults, rings_of_four_slots_never_overflow_and_count_every_completion) {
  NEEDS_RDMA();
  constexpr int n = 2;
  constexpr std::size_t count = std::size_t{25} << 20;  // 100 MiB
  std::array<verbs_statistics, n> counted;
  std::array<long, 2> pages{};
  auto const groups = in_process_group::make(n);
  rondo::testing::on_ranks(n, [&](rank_t r) {
    auto const& g = groups[static_cast<std::size_t>(r)];
    verbs_options options;
    options.slots = 4;
    auto const x = std::make_shared<verbs>(verbs::connect(g, options));
    auto const locked = x->statistics().locked_bytes;
    EXPECT_EQ(locked, 2 * 4 * options.slot_bytes);
    std::vector<float> data(count);
    {
      communicator<observed> comm(g, observed(x));
      for (auto& after : pages) {
        std::fill(data.begin(), data.end(), 1.0f);
        comm.all_reduce(data, sum, {.algorithm = algorithm::ring});
        EXPECT_TRUE(std::all_of(data.begin(), data.end(), [](float v) { return v == n; }));
        comm.barrier();
        if (r == 0) after = resident_pages();
        comm.barrier();
      }
    }
    auto const settled = [&] {
      x->wait(1ms);
      auto const s = x->statistics();
      return s.completed == s.work_requests;
    };
    EXPECT_TRUE(within(10s, settled)) << x->statistics().completed << " of " << x->statistics().work_requests;
    g->exchange("sent", clock::now() + 10s);
    x->wait(0ms);
    auto& s = counted[static_cast<std::size_t>(r)] = x->statistics();
    EXPECT_EQ(s.receiver_not_ready, 0u);
    EXPECT_EQ(s.locked_bytes, locked);
    EXPECT_GE(s.work_requests, 2 * count * sizeof(float) / options.slot_bytes);
  });
  EXPECT_EQ(counted[0].received, counted[1].work_requests);
  EXPECT_EQ(counted[1].received, counted[0].work_requests);
  EXPECT_LT((pages[1] - pages[0]) * ::sysconf(_SC_PAGESIZE), 1 << 20);
}

TEST(verbs_faults, a_forked_child_drops_it_unnoticed) {
  NEEDS_RDMA();
  auto const groups = in_process_group::make(2);
  rondo::testing::on_ranks(2, [&](rank_t r) {
    std::optional<verbs> x(verbs::connect(groups[static_cast<std::size_t>(r)]));
    if (r == 0) {
      process child([&] {
        x.reset();
        return 0;
      });
      EXPECT_EQ(child.wait(), 0);
    }
    rondo::testing::exchange(*x, {1 - r}, rondo::testing::stream(1, 300'000));
  });
}

/// Connects two ranks that do not fit together; both must say why.
void expect_refusal(std::array<verbs_options, 2> const& options, rank_t culprit, std::string const& sentence) {
  auto const groups = in_process_group::make(2);
  rondo::testing::on_ranks(2, [&](rank_t r) {
    try {
      verbs::connect(groups[static_cast<std::size_t>(r)], options[static_cast<std::size_t>(r)]);
      ADD_FAILURE() << "rank " << r << " has connected";
    } catch (connect_error const& e) {
      EXPECT_EQ(e.rank(), culprit) << e.what();
      EXPECT_NE(std::string(e.what()).find(sentence), std::string::npos) << e.what();
    }
  });
}

TEST(verbs_faults, ranks_that_cannot_connect_all_say_which_one_and_why) {
  NEEDS_RDMA();
  verbs_options const usual;
  auto changed = usual;
  changed.devices = "=mlx9_7";
  expect_refusal({usual, changed}, 1, "rank 1 cannot use RDMA: no RDMA port can be used: ");
  expect_refusal({changed, usual}, 0, "is left out by the filter \"=mlx9_7\"");
  changed = usual;
  changed.gid_index = 99;
  expect_refusal({usual, changed}, 1, "has no GID 99; it has ");
  changed = usual;
  changed.slots = 16;
  expect_refusal({usual, changed}, 1, "has other verbs_options (rails, stripe, slots, slot_bytes) than rank 0");
  changed = usual;
  changed.retries = 7;
  expect_refusal({usual, changed}, 1, "0 to 6 retries");
}

}  // namespace
