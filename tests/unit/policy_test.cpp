#include <rondo/explain.hpp>
#include <rondo/policy.hpp>

#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <unistd.h>

namespace {

using namespace rondo;

constexpr char const* text = R"(# provenance: a machine
all_reduce tcp 4 65536 185363 ring 412.5 mixed_radix 437.1

all_reduce tcp 4 8 22000 binomial 12.0 recursive_doubling 13.0  # by size, not by place
all_reduce tcp 8 8 * tree 20.0 - 0.0
reduce tcp 4 8 * ring 5.5 tree 6.0
all_reduce shm 4 8 * direct 1.0 ring 2.0
)";

std::string complaint(std::string_view line) {
  try {
    policy::parse(std::string("# first\n\n") + std::string(line) + "\n", "x.policy");
  } catch (invalid_argument const& e) { return e.what(); }
  return "was accepted";
}

bool has(std::string const& sentence, std::string_view words) { return sentence.find(words) != std::string::npos; }

TEST(policy, reads_its_lines_and_sorts_them_by_size) {
  auto const p = policy::parse(text, "a name");
  EXPECT_EQ(p.name(), "a name");
  ASSERT_EQ(p.lines().size(), 5U);
  auto const lines = p.lines_for(collective::all_reduce, "tcp", 4);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].algorithm, algorithm::binomial);
  EXPECT_EQ(lines[0].bytes, 8U);
  EXPECT_DOUBLE_EQ(lines[0].microseconds, 12);
  EXPECT_EQ(lines[0].runner_up, algorithm::recursive_doubling);
  EXPECT_DOUBLE_EQ(lines[0].runner_up_microseconds, 13);
  EXPECT_EQ(lines[1].algorithm, algorithm::ring);
  EXPECT_EQ(p.lines_for(collective::all_reduce, "tcp", 8).front().runner_up, algorithm::automatic);
  EXPECT_EQ(policy::parse("\t reduce\ttcp 4 8 * ring 5.5 tree 6.0\r\n").lines().size(), 1U);
}

TEST(policy, a_line_holds_up_to_its_size_and_none_beyond_the_last) {
  auto const p = policy::parse(text);
  auto const lines = p.lines_for(collective::all_reduce, "tcp", 4);
  EXPECT_EQ(line_for(lines, 0)->algorithm, algorithm::binomial);
  EXPECT_EQ(line_for(lines, 22000)->algorithm, algorithm::binomial);
  EXPECT_EQ(line_for(lines, 22001)->algorithm, algorithm::ring);
  EXPECT_EQ(line_for(lines, 185363)->algorithm, algorithm::ring);
  EXPECT_EQ(line_for(lines, 185364), nullptr);
  EXPECT_EQ(line_for(p.lines_for(collective::all_reduce, "tcp", 8), std::size_t{1} << 40)->algorithm, algorithm::tree);
}

TEST(policy, ranks_in_between_take_the_lines_below_but_not_of_half_as_many) {
  auto const p = policy::parse(text);
  for (int const ranks : {4, 5, 7}) EXPECT_EQ(p.lines_for(collective::all_reduce, "tcp", ranks).size(), 2U) << ranks;
  for (int const ranks : {8, 15}) EXPECT_EQ(p.lines_for(collective::all_reduce, "tcp", ranks).size(), 1U) << ranks;
  for (int const ranks : {1, 3, 16, 1000})
    EXPECT_TRUE(p.lines_for(collective::all_reduce, "tcp", ranks).empty()) << ranks;
  EXPECT_TRUE(p.lines_for(collective::all_reduce, "ucx", 4).empty());
  EXPECT_TRUE(p.lines_for(collective::broadcast, "tcp", 4).empty());
}

TEST(policy, writes_what_it_reads) {
  auto const p = policy::parse(text);
  std::string again;
  for (auto const& l : p.lines()) again += to_string(l) + "\n";
  EXPECT_EQ(policy::parse(again).digest(), p.digest());
  EXPECT_TRUE(has(again, "all_reduce tcp 4 65536 185363 ring 412.5 mixed_radix 437.1\n")) << again;
  EXPECT_TRUE(has(again, "all_reduce tcp 8 8 * tree 20.0 - 0.0\n")) << again;
}

TEST(policy, alike_choices_have_one_digest_whatever_was_measured) {
  auto const one = policy::parse("all_reduce tcp 4 8 * ring 1 tree 2");
  EXPECT_EQ(one.digest(), policy::parse("# later\nall_reduce tcp 4 64 * ring 3 binomial 4").digest());
  EXPECT_EQ(policy::parse("# nothing").digest(), 0U);
  for (auto const* other :
       {"all_reduce tcp 4 8 * tree 1 tree 2", "all_reduce tcp 4 8 9 ring 1 tree 2",
        "all_reduce tcp 3 8 * ring 1 tree 2", "all_reduce shm 4 8 * ring 1 tree 2", "reduce tcp 4 8 * ring 1 tree 2"})
    EXPECT_NE(one.digest(), policy::parse(other).digest()) << other;
}

TEST(policy, says_which_line_is_wrong_and_what_to_do) {
  struct {
    std::string_view line, words;
  } const cases[] = {
      {"all_reduce tcp 4", "3 words instead of 9"},
      {"all_reduce tcp 4 8 * ring 1 tree 2 more", "10 words instead of 9"},
      {"all_reduction tcp 4 8 * ring 1 tree 2", "'all_reduction' as word 1"},
      {"all_reduce tcp four 8 * ring 1 tree 2", "'four' as word 3"},
      {"all_reduce tcp 0 8 * ring 1 tree 2", "'0' as word 3"},
      {"all_reduce tcp 4 -8 * ring 1 tree 2", "'-8' as word 4"},
      {"all_reduce tcp 4 64 8 ring 1 tree 2", "'8' as word 5"},
      {"all_reduce tcp 4 8 1e3 ring 1 tree 2", "'1e3' as word 5"},
      {"all_reduce tcp 4 8 * rinq 1 tree 2", "'rinq' as word 6"},
      {"all_reduce tcp 4 8 * automatic 1 tree 2", "no algorithm"},
      {"all_reduce tcp 4 8 * ring nan tree 2", "'nan' as word 7"},
      {"all_reduce tcp 4 8 * ring 1us tree 2", "'1us' as word 7"},
      {"all_reduce tcp 4 8 * ring 1 three 2", "'three' as word 8"},
      {"all_reduce tcp 4 8 * ring 1 tree -2", "'-2' as word 9"},
  };
  for (auto const& c : cases) {
    auto const said = complaint(c.line);
    EXPECT_TRUE(has(said, "line 3 of x.policy")) << said;
    EXPECT_TRUE(has(said, c.words)) << said;
    EXPECT_TRUE(has(said, "rondo tune")) << said;
  }
}

TEST(policy, loads_files_and_names_those_that_it_cannot_read) {
  auto const path = testing::TempDir() + "rondo_policy_test." + std::to_string(::getpid());
  std::ofstream(path) << text;
  auto const p = policy::load(path);
  EXPECT_EQ(p.name(), path);
  EXPECT_EQ(p.lines().size(), 5U);
  std::ofstream(path) << "nonsense\n";
  EXPECT_THROW(policy::load(path), invalid_argument);
  ::unlink(path.c_str());
  try {
    policy::load(path);
    ADD_FAILURE() << "was loaded";
  } catch (invalid_argument const& e) { EXPECT_TRUE(has(e.what(), path) && has(e.what(), "rondo tune")) << e.what(); }
}

TEST(explain, says_whether_measurements_or_the_model_chose) {
  auto const p = policy::parse(text, "x.policy");
  situation s{.collective = collective::all_reduce, .bytes = 65536, .ranks = 5, .link = link::tcp};
  auto said = explain(s, "tcp", &p);
  for (auto const* words : {"all_reduce of 64 KiB on 5 ranks over tcp: ring\n", "x.policy", "412.5 us at 64 KiB on 4",
                            "mixed_radix with 437.1 us", "up to 181 KiB"})
    EXPECT_TRUE(has(said, words)) << words << " is missing in: " << said;
  s.bytes = 1 << 20;
  said = explain(s, "tcp", &p);
  for (auto const* words : {"1 MiB", "by the model", "one after the other", "alpha", "beta", "predicted"})
    EXPECT_TRUE(has(said, words)) << words << " is missing in: " << said;
  s.bytes = 8;
  s.ordered = true;
  s.ranks = 8;  // the line there says tree, which is not ordered
  EXPECT_TRUE(has(explain(s, "tcp", &p), "8 ranks over tcp: recursive_doubling\n  by the model"));
}

TEST(explain, says_where_the_second_hop_begins) {
  situation const s{.collective = collective::all_reduce, .bytes = 8, .ranks = 2, .shared_memory = true};
  EXPECT_TRUE(has(explain(s, "shm", nullptr, 32768), "direct\n  because the ranks share memory: one hop up to 32 KiB"));
}

}  // namespace
