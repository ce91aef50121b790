#include "transport_suite.hpp"
#include <rondo/communicator.hpp>
#include <rondo/ops.hpp>
#include <rondo/transports/in_process_group.hpp>
#include <rondo/transports/multi.hpp>

#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::testing {
namespace {

/// Runs body(rank, x) on ranks of which `each` after the other play that they share a host; 0: all of them.
template <class Body>
void on_hosts_of(int each, int n, Body body) {
  auto const groups = in_process_group::make(n);
  on_ranks(n, [&](rank_t r) {
    multi::options_type options;
    if (each > 0) options.host = "host " + std::to_string(r / each);
    auto x = multi::connect(groups[static_cast<std::size_t>(r)], options);
    body(r, x);
  });
}

template <int Each>
struct on_hosts {
  static constexpr bool notices_departure = Each == 1;  // TCP tells, shared memory leaves it to the group

  template <class Body>
  static void world(int n, Body body) {
    on_hosts_of(Each, n, body);
  }
};

using worlds = ::testing::Types<on_hosts<0>, on_hosts<1>, on_hosts<2>>;
INSTANTIATE_TYPED_TEST_SUITE_P(multi, transport_suite, worlds);

using std::chrono::milliseconds, std::chrono::seconds, std::chrono::steady_clock;

/// The sentence of the connect_error that each of n ranks gets; an empty one for a rank that gets none.
template <class X = multi>
std::vector<std::string> refusals(std::vector<typename X::options_type> const& options) {
  auto const n = static_cast<int>(options.size());
  auto const groups = in_process_group::make(n);
  std::vector<std::string> said(options.size());
  on_ranks(n, [&](rank_t r) {
    auto const i = static_cast<std::size_t>(r);
    try {
      X::connect(groups[i], options[i], group::clock::now() + seconds(10));
    } catch (connect_error const& e) { said[i] = e.what(); }
  });
  return said;
}

TEST(multi, says_which_pair_uses_what) {
  on_hosts_of(2, 4, [](rank_t r, multi& x) {
    EXPECT_EQ(x.explain(r ^ 1), "shm");
    EXPECT_EQ(x.explain(r ^ 2), "tcp (shm is not for hosts that are called apart)");
    EXPECT_EQ(x.host_leader(), r / 2 * 2);
    auto const all = explain(x);
    EXPECT_NE(all.find("with rank " + std::to_string(r ^ 1) + " by shm"), std::string::npos) << all;
    EXPECT_NE(all.find(r < 2 ? "with ranks 2, 3 by tcp" : "with ranks 0, 1 by tcp"), std::string::npos) << all;
  });
}

TEST(multi, shares_memory_where_all_ranks_do) {
  on_hosts_of(0, 3, [](rank_t, multi& x) { EXPECT_FALSE(x.board(2).empty()); });
  on_hosts_of(2, 3, [](rank_t, multi& x) { EXPECT_TRUE(x.board(2).empty()); });
}

TEST(multi, sleeps_over_all_its_transports) {
  on_hosts_of(2, 3, [](rank_t r, multi& x) {
    if (r != 0) {  // rank 1 speaks through memory, rank 2 by TCP, and each is heard at once
      for (int i = 0; i < 3; ++i) {
        std::this_thread::sleep_for(milliseconds(r == 1 ? 60 : 100));
        send(x, 0, stream(0, 1));
        receive(x, 0, 1);
      }
      return;
    }
    for (rank_t const from : {1, 2}) {
      for (int i = 0; i < 3; ++i) {
        auto const start = steady_clock::now();
        while (x.readable(from, 1).empty()) x.wait(seconds(20));
        EXPECT_LT(steady_clock::now() - start, seconds(10));
        x.consume(from, 1);
        send(x, from, stream(0, 1));
      }
    }
  });
}

TEST(multi, costs_nothing_while_it_sleeps) {
  on_hosts_of(2, 3, [](rank_t r, multi& x) {
    if (r == 0) {
      std::timespec before{}, after{};
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
      for (int i = 0; i < 10; ++i) x.wait(milliseconds(50));
      ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
      auto const us = (after.tv_sec - before.tv_sec) * 1'000'000 + (after.tv_nsec - before.tv_nsec) / 1000;
      EXPECT_LT(us, 20'000) << "of 500 ms";
      for (rank_t const q : {1, 2}) send(x, q, stream(0, 1));
    } else {
      receive(x, 0, 1);
    }
  });
}

TEST(multi, keeps_to_the_lists_of_both_ends) {
  auto const groups = in_process_group::make(3);
  on_ranks(3, [&](rank_t r) {
    multi::options_type options;
    options.transports = r == 2 ? "^shm" : r == 1 ? "tcp,shm" : "";
    auto x = multi::connect(groups[static_cast<std::size_t>(r)], options);
    if (r < 2) { EXPECT_EQ(x.explain(1 - r), "shm"); }
    EXPECT_EQ(x.explain(r == 2 ? 0 : 2), "tcp (shm is forbidden by rank 2)");
    exchange(x, {(r + 1) % 3, (r + 2) % 3}, stream(1, 1000));
  });
}

TEST(multi, refuses_on_all_ranks_what_cannot_be) {
  for (auto const& said : refusals({{.transports = "shm"}, {.transports = "tcp"}}))
    EXPECT_EQ(said, "rondo: nothing connects ranks 0 and 1: shm is forbidden by rank 1; tcp is forbidden by rank 0");
  for (auto const& said : refusals({{}, {.transports = "smh,tcp"}}))
    EXPECT_EQ(said, "rondo: rank 1 cannot connect: the transports \"smh,tcp\" name smh, but this program has shm, tcp: "
                    "correct RONDO_TRANSPORTS or multi_options::transports");
}

/// TCP under another name, as far as the ranks of `Rules` can be connected.
template <class Rules>
struct card : tcp {
  static constexpr std::string_view name = "card";
  explicit card(tcp x) : tcp(std::move(x)) {}
  static card connect(std::shared_ptr<group> const& g, tcp_options const& options, group::clock::time_point until) {
    Rules::connect(*g);
    return card(tcp::connect(g, options, until));
  }
  static std::vector<bool> reach(group& g, group::clock::time_point) {
    std::vector<bool> reached;
    for (rank_t q = 0; q < g.size(); ++q) reached.push_back(q == g.rank() || Rules::reaches(g.rank(), q));
    return reached;
  }
};

struct between_1_and_2 {
  static void connect(group&) {}
  static bool reaches(rank_t r, rank_t q) { return r + q == 3 && r != 0 && q != 0; }
};

TEST(multi, names_a_lost_rank_as_the_caller_does) {
  auto const groups = in_process_group::make(3);
  on_ranks(3, [&](rank_t r) {
    auto x = basic_multi<card<between_1_and_2>, tcp>::connect(groups[static_cast<std::size_t>(r)]);
    if (r == 2) return;
    bytes one(1);
    patience const p;
    try {
      for (;; p.pause(x)) x.read(2, one);
    } catch (peer_lost const& e) {
      EXPECT_EQ(e.rank(), 2);
      EXPECT_EQ(std::string(e.what()).find("rondo: rank 2 "), 0u) << e.what();
    }
  });
}

struct broken_on_1 {
  static void connect(group& g) {
    if (g.rank() == 1) throw connect_error("no card");
  }
  static bool reaches(rank_t, rank_t) { return true; }
};

TEST(multi, goes_on_with_the_next_transport_where_one_fails) {
  auto const groups = in_process_group::make(3);
  on_ranks(3, [&](rank_t r) {
    auto x = basic_multi<card<broken_on_1>, tcp>::connect(groups[static_cast<std::size_t>(r)], {},
                                                          group::clock::now() + seconds(8));
    EXPECT_EQ(x.explain((r + 1) % 3).find("tcp (card failed: "), 0u) << x.explain((r + 1) % 3);
    EXPECT_EQ(x.host_leader(), nobody);
    exchange(x, {(r + 1) % 3, (r + 2) % 3}, stream(1, 1000));
  });
}

struct between_neighbours {
  static void connect(group&) {}
  static bool reaches(rank_t r, rank_t q) { return r - q == 1 || q - r == 1; }
};

TEST(multi, leaves_pairs_to_the_next_transport_where_reaching_is_not_transitive) {
  auto const groups = in_process_group::make(3);
  on_ranks(3, [&](rank_t r) {
    auto x = basic_multi<card<between_neighbours>, tcp>::connect(groups[static_cast<std::size_t>(r)]);
    if (r < 2) { EXPECT_EQ(x.explain(1 - r), "card"); }
    if (r != 1) { EXPECT_EQ(x.explain(2 - r), "tcp (card does not reach so far)"); }
    if (r == 1) { EXPECT_EQ(x.explain(2), "tcp (card would also have to connect ranks that it does not)"); }
    exchange(x, {(r + 1) % 3, (r + 2) % 3}, stream(1, 1000));
  });
}

TEST(multi, tells_the_communicator_where_the_hosts_are) {
  auto const groups = in_process_group::make(5);
  on_ranks(5, [&](rank_t r) {
    multi::options_type options;
    options.host = r == 0 ? "alone" : "together";
    auto const& g = groups[static_cast<std::size_t>(r)];
    communicator<multi> c(g, multi::connect(g, options));
    EXPECT_NE(c.explain(collective::all_reduce, std::size_t{25} << 20).find("between hosts"), std::string::npos);
    std::vector<int> v(100'000, r + 1);
    c.all_reduce<hierarchical>(v, sum);
    EXPECT_EQ(v, std::vector<int>(v.size(), 15));
    auto part = c.split(r % 2, r);  // with the same options: hosts stay apart
    EXPECT_NE(part->explain().find(r % 2 == 1 ? "shm" : "tcp"), std::string::npos) << part->explain();
    std::vector<int> w(1000, 1);
    part->all_reduce(w, sum);
    EXPECT_EQ(w.front(), part->size());
  });
}

}  // namespace
}  // namespace rondo::testing
