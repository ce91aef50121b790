#include "../vm/needs_rdma.hpp"
#include "ranks.hpp"
#include <rondo/transports/in_process_group.hpp>
#include <rondo/transports/verbs.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <optional>
#include <span>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace rondo::testing {
namespace {

/// What a queue pair is set to when it is connected.
struct connected_pair {
  ::ibv_qp_attr is{};
  ::ibv_qp_init_attr made{};
  std::uint32_t number = 0;
};

/// Connects two ranks as verbs::connect() does, and asks the device about the queue pair of each.
std::array<connected_pair, 2> connect_two(verbs_options const& options) {
  std::array<connected_pair, 2> found;
  auto const groups = in_process_group::make(2);
  on_ranks(2, [&](rank_t r) {
    auto const& g = groups[static_cast<std::size_t>(r)];
    auto const until = group::clock::now() + std::chrono::seconds(20);
    auto& mine = found[static_cast<std::size_t>(r)];
    detail::verbs_mesh mesh(*g, options);
    std::vector<detail::verbs_wiring> wirings;
    for (auto const& text : g->exchange(mesh.open().encode(), until))
      wirings.push_back(detail::verbs_wiring::decode(text, 0, 2));
    EXPECT_EQ(mesh.connect(wirings), "");
    g->exchange("", until);
    auto const fabric = mesh.take();
    auto* const qp = fabric->streams()[static_cast<std::size_t>(1 - r)].lanes().front().queue_pair();
    EXPECT_EQ(::ibv_query_qp(qp, &mine.is,
                             IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                 IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN,
                             &mine.made),
              0);
    mine.number = qp->qp_num;
    g->exchange("", until);
  });
  return found;
}

TEST(verbs_settings, are_those_that_no_trap_is_known_of) {
  NEEDS_RDMA();
  verbs_options options;
  options.traffic_class = 106;
  for (auto const& q : connect_two(options)) {
    EXPECT_EQ(q.is.qp_state, IBV_QPS_RTS);
    EXPECT_EQ(q.made.qp_type, IBV_QPT_RC);
    EXPECT_GE(q.is.min_rnr_timer, 12) << "0 is 655 ms";
    EXPECT_LE(q.is.retry_cnt, 6) << "7 is for ever";
    EXPECT_LE(q.is.rnr_retry, 6) << "7 is for ever";
    EXPECT_EQ(q.is.timeout, 14);
    EXPECT_EQ(q.is.ah_attr.is_global, 1);
    EXPECT_EQ(q.is.ah_attr.grh.traffic_class, 106);
    detail::verbs_ports const found(options);
    EXPECT_EQ(q.is.path_mtu, found.ports().front().mtu);
    EXPECT_TRUE(
        std::equal(q.is.ah_attr.grh.dgid.raw, q.is.ah_attr.grh.dgid.raw + 16, found.ports().front().gid.bytes.begin()));
    EXPECT_EQ(q.made.sq_sig_all, 0);
  }
}

TEST(verbs_settings, no_two_connections_share_a_number_or_a_first_packet) {
  NEEDS_RDMA();
  std::vector<std::uint32_t> numbers, packets;
  for (int i = 0; i < 3; ++i)
    for (auto const& q : connect_two({})) {
      numbers.push_back(q.number);
      packets.push_back(q.is.sq_psn);
    }
  for (auto* const all : {&numbers, &packets}) {
    std::sort(all->begin(), all->end());
    EXPECT_EQ(std::adjacent_find(all->begin(), all->end()), all->end());
  }
}

TEST(verbs_settings, a_gid_is_chosen_by_its_number) {
  NEEDS_RDMA();
  auto const best = detail::verbs_ports(verbs_options{}).ports().front().gid;
  verbs_options options;
  options.gid_index = 0;
  auto const first = detail::verbs_ports(options).ports().front().gid;
  EXPECT_EQ(first.index, 0);
  if (best.index == 0) GTEST_SKIP() << "the port has only one GID that is good";
  EXPECT_NE(first.bytes, best.bytes);
  for (auto const& q : connect_two(options))
    EXPECT_TRUE(std::equal(first.bytes.begin(), first.bytes.end(), q.is.ah_attr.grh.dgid.raw));
}

TEST(verbs_settings, too_little_memory_that_may_be_locked_is_a_sentence_with_numbers) {
  NEEDS_RDMA();
  // Who is root may lock as much as there is; so a child that is not.
  ::pid_t const child = ::fork();
  if (child == 0) {
    ::rlimit const limit{4096, 4096};
    if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || (::geteuid() == 0 && ::setuid(65534) != 0)) ::_exit(2);
    int sentences = 0;
    auto const groups = in_process_group::make(2);
    on_ranks(2, [&](rank_t r) {
      try {
        verbs::connect(groups[static_cast<std::size_t>(r)]);
      } catch (connect_error const& e) {
        std::string const text = e.what();
        if (r == 0 &&
            text.find("the limit on locked memory is 4096 bytes; raise it (ulimit -l unlimited)") != std::string::npos)
          ++sentences;
        else if (r == 0)
          std::fprintf(stderr, "%s\n", text.c_str());
      }
    });
    ::_exit(sentences == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(verbs_settings, what_fills_every_slot_arrives_though_the_writer_leaves_at_once) {
  NEEDS_RDMA();
  auto const groups = in_process_group::make(2);
  on_ranks(2, [&](rank_t r) {
    auto const& g = groups[static_cast<std::size_t>(r)];
    auto const until = group::clock::now() + std::chrono::seconds(20);
    std::optional<verbs> x(verbs::connect(g));
    auto const message = stream(2, std::size_t{2} << 20);
    std::size_t accepted = 0;
    if (r == 0) {
      while (auto const n = x->write(1, std::span(message).subspan(accepted), false)) accepted += n;
      x.reset();
    }
    auto const n = std::stoul(g->exchange(std::to_string(accepted), until)[0]);
    EXPECT_EQ(n, 32 * verbs_options{}.slot_bytes);
    if (r == 0) return;
    EXPECT_TRUE(
        std::equal(message.begin(), message.begin() + static_cast<std::ptrdiff_t>(n), receive(*x, 0, n).begin()));
  });
}

TEST(verbs_settings, a_transport_is_connected_again_with_the_same_options_and_new_queue_pairs) {
  NEEDS_RDMA();
  auto const groups = in_process_group::make(2), later = in_process_group::make(2);
  on_ranks(2, [&](rank_t r) {
    verbs_options options;
    options.slots = 7;
    options.slot_bytes = 5000;
    auto const first = verbs::connect(groups[static_cast<std::size_t>(r)], options);
    auto second = first.reconnect(later[static_cast<std::size_t>(r)], group::clock::now() + std::chrono::seconds(20));
    EXPECT_EQ(second.statistics().locked_bytes, first.statistics().locked_bytes);
    EXPECT_EQ(second.statistics().work_requests, 0u);
    exchange(second, {1 - r}, stream(1, 100'000));
  });
}

}  // namespace
}  // namespace rondo::testing
