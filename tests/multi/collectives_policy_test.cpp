#include "collectives.hpp"
#include <rondo/policy.hpp>
#include <rondo/transports/in_process.hpp>
#include <rondo/transports/tcp.hpp>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <thread>
#include <unistd.h>

namespace {

using namespace collectives_test;

std::shared_ptr<policy const> parsed(std::string_view text) {
  return std::make_shared<policy const>(policy::parse(text, "test.policy"));
}

constexpr std::string_view trees =
    "all_reduce tcp 3 8 4096 tree 1 ring 2\nall_reduce tcp 3 65536 * ordered_halving 1 ring 2\n"
    "all_reduce in_process 3 8 100 double_tree 1 direct 2\n";

/// What the model says for 8 bytes; the rest is in tests/unit/select_test.cpp.
algorithm without_policy(comm const& c, collective what) {
  situation s{.collective = what, .bytes = 8, .ranks = c.size(), .link = rondo::link::tcp};
  s.turns = static_cast<unsigned>(c.size()) > std::thread::hardware_concurrency();
  return select(s);
}

TEST(a_policy, is_obeyed_where_it_says_something_that_can_be_done) {
  communicator_options const options{.deadline = std::chrono::seconds(20), .policy = parsed(trees)};
  on_ranks(
      medium::tcp, 3,
      [](comm& c) {
        EXPECT_EQ(c.chosen(collective::all_reduce, 4096), algorithm::tree);
        EXPECT_NE(c.explain(collective::all_reduce, 4096).find("tree\n  by the policy test.policy"), std::string::npos);
        // Three ranks are no power of two: the model chooses.
        EXPECT_EQ(c.chosen(collective::all_reduce, std::size_t{1} << 30), algorithm::ring);
        EXPECT_NE(c.explain(collective::all_reduce, std::size_t{1} << 30).find("by the model"), std::string::npos);
        EXPECT_EQ(c.chosen(collective::broadcast, 8), without_policy(c, collective::broadcast));
        for (std::size_t const count : {1, 1000, 100000}) {
          std::vector<float> v(count, static_cast<float>(c.rank() + 1)), out(count);
          c.all_reduce(v, out, sum);
          EXPECT_EQ(out.back(), 6);
        }
      },
      options);
}

TEST(a_policy, can_take_an_all_reduce_off_shared_memory) {
  communicator_options const options{.deadline = std::chrono::seconds(20), .policy = parsed(trees)};
  on_ranks(
      medium::in_process, 3,
      [](comm& c) {
        EXPECT_EQ(c.chosen(collective::all_reduce, 100), algorithm::double_tree);
        EXPECT_EQ(c.chosen(collective::all_reduce, 101), algorithm::direct);
        EXPECT_NE(c.explain(collective::all_reduce, 101).find("one hop up to"), std::string::npos);
        std::vector<float> v(25, 2), out(25);
        c.all_reduce(v, out, sum);
        EXPECT_EQ(out.back(), 6);
      },
      options);
}

TEST(a_policy, is_passed_on_to_parts_of_a_communicator) {
  communicator_options const options{.deadline = std::chrono::seconds(20), .policy = parsed(trees)};
  on_ranks(
      medium::tcp, 3, [](comm& c) { EXPECT_EQ(c.duplicate().chosen(collective::all_reduce, 8), algorithm::tree); },
      options);
}

TEST(chosen, is_offered_for_every_collective_and_size_and_is_direct_for_messages) {
  on_ranks(medium::in_process, 3, [](comm& c) {
    for (auto what = collective::all_reduce; what <= collective::send_receive;
         what = static_cast<collective>(static_cast<int>(what) + 1))
      for (std::size_t bytes = 1; bytes <= std::size_t{1} << 44; bytes *= 2) {
        auto const a = c.chosen(what, bytes - 1);
        if (what == collective::send_receive)
          EXPECT_EQ(a, algorithm::direct);
        else
          EXPECT_TRUE(c.offers(a, what)) << to_string(a) << ' ' << to_string(what) << ' ' << bytes;
      }
    EXPECT_NE(c.explain(collective::send_receive, 8).find("one way"), std::string::npos);
    c.barrier();
  });
}

/// What every rank of a world says that it cannot be made with these options.
std::vector<std::string> complaints(std::vector<communicator_options> const& options) {
  auto groups = in_process_group::make(static_cast<int>(options.size()));
  std::vector<std::string> said(options.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < options.size(); ++r)
    threads.emplace_back([&, r] {
      try {
        auto const g = std::move(groups[r]);
        comm const c(g, in_process::connect(g), options[r]);
      } catch (error const& e) { said[r] = e.what(); }
    });
  for (auto& t : threads) t.join();
  return said;
}

TEST(a_policy, that_ranks_do_not_share_is_refused_by_all_of_them) {
  communicator_options without{.deadline = std::chrono::seconds(20)}, with = without, with_other = without;
  with.policy = parsed(trees);
  with_other.policy = parsed("all_reduce tcp 3 8 4096 ring 1 tree 2");
  for (auto const& said : complaints({with, with, with_other}))
    EXPECT_NE(said.find("rank 2 has another policy than rank 0: give all ranks the same"), std::string::npos) << said;
  for (auto const& said : complaints({without, with}))
    EXPECT_NE(said.find("rank 1 has a policy, but rank 0 has none"), std::string::npos) << said;
  for (auto const& said : complaints({with, without}))
    EXPECT_NE(said.find("rank 1 has no policy, but rank 0 has one"), std::string::npos) << said;
}

TEST(the_environment, names_a_policy_for_those_that_bring_none) {
  auto const path = testing::TempDir() + "rondo_environment_test." + std::to_string(::getpid());
  std::ofstream(path) << trees;
  ::setenv("RONDO_POLICY", path.c_str(), 1);
  on_ranks(medium::tcp, 3, [](comm& c) { EXPECT_EQ(c.chosen(collective::all_reduce, 8), algorithm::tree); });
  communicator_options const own{.deadline = std::chrono::seconds(20), .policy = parsed("# nothing")};
  on_ranks(
      medium::tcp, 3,
      [](comm& c) { EXPECT_EQ(c.chosen(collective::all_reduce, 8), without_policy(c, collective::all_reduce)); }, own);
  std::ofstream(path) << "all_reduce tcp 3 8 4096 no_such_tree 1 ring 2\n";
  for (auto const& said : complaints({{.deadline = std::chrono::seconds(20)}, {.deadline = std::chrono::seconds(20)}}))
    EXPECT_NE(said.find("unknown name 'no_such_tree'"), std::string::npos) << said;
  ::unsetenv("RONDO_POLICY");
  ::unlink(path.c_str());
}

}  // namespace
