#include "../../bench/launch.hpp"
#include "bootstrap_job.hpp"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <poll.h>
#include <sstream>

namespace {

using namespace bootstrap_test;

using words = std::vector<std::string>;

/// `rondo launch` in a process of its own, its output in pipes; of the signals that it forwards it ignores that one.
class launcher {
 public:
  explicit launcher(words const& arguments, int ignored = 0) {
    if (::pipe2(out_, O_CLOEXEC) != 0 || ::pipe2(err_, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
      for (int const signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, signal == ignored ? SIG_IGN : SIG_DFL);
      ::dup2(out_[1], STDOUT_FILENO);
      ::dup2(err_[1], STDERR_FILENO);
      ::close(out_[0]);
      ::close(err_[0]);
      words all{"launch"};
      all.insert(all.end(), arguments.begin(), arguments.end());
      std::vector<char*> raw;
      for (auto& word : all) raw.push_back(word.data());
      ::_exit(rondo::bench::launch(static_cast<int>(raw.size()), raw.data()));
    }
    ::close(out_[1]);
    ::close(err_[1]);
  }
  ~launcher() {
    if (out_[0] >= 0) ::close(out_[0]);
    ::close(err_[0]);
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  void send(int signal) const { ::kill(pid_, signal); }
  void stop_reading() { ::close(std::exchange(out_[0], -1)); }

  /// Reads until `text` has come on standard output.
  bool shows(std::string const& text) {
    while (out.find(text) == out.npos)
      if (!pump(10'000)) return false;
    return true;
  }

  /// The exit code of the launcher, or minus the signal, once all output has been read.
  int wait() {
    while (pump(30'000)) {}
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  std::string out, err;

 private:
  bool pump(int patience) {
    pollfd polled[]{{out_open_ ? out_[0] : -1, POLLIN, 0}, {err_open_ ? err_[0] : -1, POLLIN, 0}};
    if ((polled[0].fd < 0 && polled[1].fd < 0) || ::poll(polled, 2, patience) <= 0) return false;
    if (polled[0].revents) out_open_ = take(out_[0], out);
    if (polled[1].revents) err_open_ = take(err_[0], err);
    return true;
  }
  static bool take(int fd, std::string& into) {
    char bytes[65536];
    auto const n = ::read(fd, bytes, sizeof bytes);
    if (n > 0) into.append(bytes, static_cast<std::size_t>(n));
    return n > 0;
  }

  int out_[2]{}, err_[2]{};
  bool out_open_ = true, err_open_ = true;
  pid_t pid_ = -1;
};

launcher shell(int ranks, std::string const& script, words const& options = {}, int ignored = 0) {
  words all{"-n", std::to_string(ranks)};
  all.insert(all.end(), options.begin(), options.end());
  all.insert(all.end(), {"--", "sh", "-c", script});
  return launcher(all, ignored);
}

std::vector<std::string> sorted_lines(std::string const& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

void expect_contains(std::string const& text, std::string const& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

bool vanishes(pid_t pid) {
  for (int i = 0; i < 200; ++i) {
    if (::kill(pid, 0) != 0) return true;
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");  // nobody may have reaped it yet
    std::string text;
    std::getline(stat, text);
    if (text.find(") Z ") != text.npos) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

TEST(launch, output_is_prefixed_and_keeps_its_stream) {
  auto job = shell(3, "echo out of $RANK; echo err of $RANK >&2");
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(sorted_lines(job.out), (words{"[0] out of 0", "[1] out of 1", "[2] out of 2"}));
  EXPECT_EQ(sorted_lines(job.err), (words{"[0] err of 0", "[1] err of 1", "[2] err of 2"}));
}

TEST(launch, without_prefix_output_is_untouched) {
  auto job = shell(1, "printf 'a\\nb'", {"--no-prefix"});
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(job.out, "a\nb");
}

TEST(launch, an_unfinished_last_line_is_finished) {
  auto job = shell(1, "printf 'a\\n\\nb'");
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(job.out, "[0] a\n[0] \n[0] b\n");
}

TEST(launch, lines_are_never_torn) {
  auto job = shell(4, "i=0; while [ $i -lt 100 ]; do printf '%0500d\\n' $RANK; i=$((i + 1)); done");
  EXPECT_EQ(job.wait(), 0);
  auto const lines = sorted_lines(job.out);
  EXPECT_EQ(lines.size(), 400U);
  for (auto const& line : lines) {
    EXPECT_EQ(line.size(), 504U);
    EXPECT_EQ(line[1], line.back());
  }
}

TEST(launch, ranks_are_told_who_they_are) {
  auto job = shell(2, "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR ${RONDO_LISTEN_FD:+fd}", {});
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(sorted_lines(job.out), (words{"[0] 0 0 2 2 127.0.0.1 fd", "[1] 1 1 2 2 127.0.0.1"}));
}

TEST(launch, all_ranks_share_a_random_token_and_a_port) {
  auto const told = [] {
    auto job = shell(3, "echo $RONDO_TOKEN $MASTER_PORT", {"--no-prefix"});
    EXPECT_EQ(job.wait(), 0);
    auto const lines = sorted_lines(job.out);
    EXPECT_EQ(lines.size(), 3U);
    EXPECT_EQ(lines.front(), lines.back());
    return lines.front();
  };
  auto const first = told(), second = told();
  EXPECT_GT(first.size(), 65U);
  EXPECT_NE(first.substr(0, 64), second.substr(0, 64));
  auto job = shell(1, "echo $RONDO_TOKEN", {"--token", "mine"});
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(job.out, "[0] mine\n");
}

TEST(launch, the_first_failure_is_named_and_the_others_may_finish) {
  auto job = shell(3, "if [ $RANK = 1 ]; then exit 3; fi; sleep 0.3; echo done");
  EXPECT_EQ(job.wait(), 3);
  EXPECT_EQ(sorted_lines(job.out), (words{"[0] done", "[2] done"}));
  EXPECT_EQ(job.err, "rondo launch: rank 1 exited with code 3\n");
}

TEST(launch, a_killed_rank_is_named_and_the_rest_is_ended_after_the_grace) {
  auto const start = clock::now();
  auto job = shell(3, "if [ $RANK = 2 ]; then kill -9 $$; fi; sleep 60", {"--grace", "0.2"});
  EXPECT_EQ(job.wait(), 128 + SIGKILL);
  EXPECT_LT(seconds_since(start), 2);
  expect_contains(job.err, "rank 2 was killed by signal 9 (SIGKILL)");
  expect_contains(job.err, "ending rank 0, 1, still running");
}

TEST(launch, of_ranks_that_end_at_once_the_killed_one_is_named) {
  auto job = shell(2, "if [ $RANK = 0 ]; then sleep 0.3; exit 1; fi; echo ready; sleep 0.3; kill -9 $$");
  ASSERT_TRUE(job.shows("[1] ready"));
  job.send(SIGSTOP);  // until both have ended
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  job.send(SIGCONT);
  EXPECT_EQ(job.wait(), 128 + SIGKILL);
  EXPECT_EQ(job.err, "rondo launch: rank 1 was killed by signal 9 (SIGKILL)\n");
}

TEST(launch, a_rank_that_ignores_sigterm_is_killed) {
  auto const start = clock::now();
  auto job = shell(2, "trap '' TERM; if [ $RANK = 0 ]; then sleep 0.5; exit 1; fi; while :; do sleep 0.1; done",
                   {"--grace", "0"});
  EXPECT_EQ(job.wait(), 1);
  EXPECT_LT(seconds_since(start), 6);
  expect_contains(job.err, "killing rank 1, which ignored SIGTERM");
}

TEST(launch, a_stopped_rank_does_not_stay) {
  auto job = shell(2, "if [ $RANK = 0 ]; then sleep 0.2; exit 1; fi; kill -STOP $$; exit 0", {"--grace", "0.1"});
  EXPECT_EQ(job.wait(), 1);
}

TEST(launch, signals_reach_the_ranks) {
  for (auto const& [signal, name] : {std::pair{SIGTERM, "TERM"}, {SIGINT, "INT"}, {SIGHUP, "HUP"}}) {
    auto job =
        shell(2, std::string("trap 'echo caught; exit 0' ") + name + "; echo ready; while :; do sleep 0.05; done");
    ASSERT_TRUE(job.shows("[0] ready"));
    ASSERT_TRUE(job.shows("[1] ready"));
    job.send(signal);
    EXPECT_EQ(job.wait(), 0);
    expect_contains(job.out, "[0] caught");
    expect_contains(job.out, "[1] caught");
  }
}

TEST(launch, a_signal_that_nohup_ignores_reaches_nobody) {
  auto job = shell(2, "echo ready; sleep 0.5", {}, SIGHUP);
  ASSERT_TRUE(job.shows("[0] ready"));
  ASSERT_TRUE(job.shows("[1] ready"));
  for (int i = 0; i < 3; ++i) {  // a second one would end a job that obeys
    job.send(SIGHUP);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(job.wait(), 0);
  EXPECT_EQ(job.err, "");
}

TEST(launch, an_interrupted_rank_counts_as_killed) {
  auto job = shell(2, "echo ready; exec sleep 60");
  ASSERT_TRUE(job.shows("[0] ready"));
  ASSERT_TRUE(job.shows("[1] ready"));
  job.send(SIGINT);
  EXPECT_EQ(job.wait(), 128 + SIGINT);
}

TEST(launch, ranks_do_not_outlive_a_killed_launcher) {
  auto job = shell(2, "echo pid $$; exec sleep 60");
  ASSERT_TRUE(job.shows("[0] pid "));
  ASSERT_TRUE(job.shows("[1] pid "));
  std::this_thread::sleep_for(50ms);
  job.send(SIGKILL);
  EXPECT_EQ(job.wait(), -SIGKILL);
  for (auto const& line : sorted_lines(job.out)) EXPECT_TRUE(vanishes(std::stoi(line.substr(8)))) << line;
}

TEST(launch, helpers_of_a_rank_are_not_left_behind) {
  auto job = shell(1, "sleep 60 & echo pid $!");
  EXPECT_EQ(job.wait(), 0);
  EXPECT_TRUE(vanishes(std::stoi(job.out.substr(8))));
}

TEST(launch, output_that_nobody_reads_ends_the_job) {
  auto const start = clock::now();
  auto job = shell(2, "echo ready; while echo x; do sleep 0.02; done");
  ASSERT_TRUE(job.shows("ready"));
  job.stop_reading();
  EXPECT_EQ(job.wait(), 128 + SIGPIPE);
  EXPECT_LT(seconds_since(start), 5);
}

TEST(launch, a_command_that_does_not_exist_is_named_once) {
  launcher job({"-n", "3", "--", "./no-such-program"});
  EXPECT_EQ(job.wait(), 127);
  EXPECT_EQ(job.err, "rondo launch: cannot run ./no-such-program: No such file or directory\n");
}

TEST(launch, wrong_command_lines_are_explained) {
  launcher no_command({"-n", "3"});
  EXPECT_EQ(no_command.wait(), 2);
  expect_contains(no_command.err, "two dashes");
  launcher no_number({"--", "true"});
  EXPECT_NE(no_number.wait(), 0);
  launcher none({"-n", "0", "--", "true"});
  EXPECT_NE(none.wait(), 0);
}

/// Runs in the ranks of the test below.
TEST(launch, DISABLED_one_rank) {
  auto const g = rondo::join(rondo::environment::detect(), {.deadline = 10s});
  auto const all = g->exchange(std::to_string(g->rank()), clock::now() + 10s);
  std::printf("\n%zu of %d\n", all.size(), g->size());
  std::fflush(stdout);
  if (std::getenv("VICTIM") && g->rank() == 2) ::kill(::getpid(), SIGKILL);
  if (std::getenv("VICTIM") && fails_within(*g, 5s)) std::printf("\n%s\n", g->verdict().what.c_str());
}

words const one_rank{
    "-n", "4", "--", "/proc/self/exe", "--gtest_also_run_disabled_tests", "--gtest_filter=launch.DISABLED_one_rank"};

TEST(launch, the_ranks_join) {
  launcher job(one_rank);
  EXPECT_EQ(job.wait(), 0) << job.out << job.err;
  for (int r = 0; r < 4; ++r) expect_contains(job.out, "[" + std::to_string(r) + "] 4 of 4\n");
}

TEST(launch, survivors_say_who_died) {
  ::setenv("VICTIM", "2", 1);
  auto const start = clock::now();
  launcher job(one_rank);
  ::unsetenv("VICTIM");
  EXPECT_EQ(job.wait(), 128 + SIGKILL);
  EXPECT_LT(seconds_since(start), 4);
  expect_contains(job.err, "rank 2 was killed by signal 9 (SIGKILL)");
  for (int const r : {0, 1, 3}) expect_contains(job.out, "[" + std::to_string(r) + "] rank 2 (pid ");
}

}  // namespace
