#include "launch.hpp"

#include <rondo/transports/bootstrap/endpoint.hpp>
#include <rondo/transports/bootstrap/handshake.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <optional>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace rondo::bench {
namespace {

using detail::file_descriptor, detail::steady;

struct launch_options {
  int ranks = 2;
  bool prefix = true;
  std::string token;
  double grace = 5;
  std::vector<std::string> command;
};

void say(std::string_view sentence) {
  auto const line = fmt::format("rondo launch: {}\n", sentence);
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

[[noreturn]] void give_up(char const* what) {
  throw std::runtime_error(fmt::format("{} failed: {}", what, detail::error_text(errno)));
}

std::pair<file_descriptor, file_descriptor> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) give_up("pipe");
  return {file_descriptor(ends[0]), file_descriptor(ends[1])};
}

/// One output stream of one rank, passed on in whole lines.
class line_relay {
 public:
  line_relay(file_descriptor from, int to, std::string prefix)
      : from_(std::move(from)), to_(to), prefix_(std::move(prefix)) {}

  int fd() const noexcept { return from_.get(); }

  /// False if the reader of the launcher's output has gone.
  bool pass_on() {
    std::array<char, 65536> bytes;
    auto const n = ::read(fd(), bytes.data(), bytes.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (n > 0) pending_.append(bytes.data(), static_cast<std::size_t>(n));
    if (n <= 0) from_.close();
    bool const whole = n <= 0 || pending_.size() > longest_line;  // no newline will come, or none may
    if (whole && !pending_.empty() && pending_.back() != '\n') pending_ += '\n';
    std::string lines;
    std::size_t at = 0;
    for (std::size_t end; (end = pending_.find('\n', at)) != pending_.npos; at = end + 1)
      lines.append(prefix_).append(pending_, at, end + 1 - at);
    pending_.erase(0, at);
    return write_all(lines);
  }

 private:
  static constexpr std::size_t longest_line = 1U << 20U;

  bool write_all(std::string_view bytes) const {
    while (!bytes.empty()) {
      auto const n = ::write(to_, bytes.data(), bytes.size());
      if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
      if (n < 0 && errno == EAGAIN) {
        pollfd room{to_, POLLOUT, 0};
        (void)::poll(&room, 1, -1);
      } else if (n < 0 && errno != EINTR) {
        return false;
      }
    }
    return true;
  }

  file_descriptor from_;
  int to_;
  std::string prefix_, pending_;
};

/// The job: its ranks, their output, and how it ends.
class local_job {
 public:
  explicit local_job(launch_options options) : options_(std::move(options)) {
    ::sigemptyset(&watched_);
    for (int const signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD})
      if (signal == SIGCHLD || !ignored(signal)) ::sigaddset(&watched_, signal);
    ::sigprocmask(SIG_BLOCK, &watched_, &mask_before_);
    ::signal(SIGPIPE, SIG_IGN);
    signals_ = file_descriptor(::signalfd(-1, &watched_, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) give_up("signalfd");
  }

  ~local_job() {
    signal_all(SIGKILL);
    for (auto const& rank : ranks_) (void)::waitpid(rank.pid, nullptr, 0);
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
  }
  local_job(local_job const&) = delete;
  local_job& operator=(local_job const&) = delete;

  int run() {
    if (auto const code = start_all(); code != 0) return code;
    while (running() > 0) turn(next_step_);
    auto const patience = steady::now() + std::chrono::milliseconds(500);  // helpers of a rank may still write
    while (has_output() && steady::now() < patience) turn(patience);
    return result_;
  }

 private:
  struct child {
    pid_t pid = -1;
    bool ended = false;  // stays a zombie until the end, so that its process group keeps its number
  };
  enum class step : unsigned char { none, terminate, kill };

  /// Was this process started with the signal ignored? Then nohup, or a shell, wants that for the ranks too.
  static bool ignored(int signal) {
    struct sigaction found {};
    return ::sigaction(signal, nullptr, &found) == 0 && found.sa_handler == SIG_IGN;
  }

  long running() const {
    return std::count_if(ranks_.begin(), ranks_.end(), [](auto const& rank) { return !rank.ended; });
  }
  bool has_output() const {
    return std::any_of(relays_.begin(), relays_.end(), [](auto const& relay) { return relay.fd() >= 0; });
  }
  void signal_all(int signal) const {
    for (auto const& rank : ranks_) (void)::kill(-rank.pid, signal);
  }

  /// 0, or the exit code if the command cannot be run.
  int start_all() {
    auto listener = detail::listen_at(detail::resolve("127.0.0.1", 0).front());
    sockaddr_in at{};
    socklen_t length = sizeof at;
    if (!listener || ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&at), &length) != 0) give_up("listen");
    auto const port = ntohs(at.sin_port);
    for (int rank = 0; rank < options_.ranks; ++rank) {
      if (auto const wrong = start(rank, port, listener.get()); wrong != 0) {
        say(fmt::format("cannot run {}: {}", options_.command.front(), detail::error_text(wrong)));
        return wrong == ENOENT ? 127 : 126;
      }
      if (rank == 0) listener.close();  // if rank 0 dies, nobody must seem to listen
    }
    return 0;
  }

  /// 0, or why the command could not be executed.
  int start(int rank, std::uint16_t port, int listener) {
    std::pair<file_descriptor, file_descriptor> out, err;
    if (options_.prefix) out = make_pipe(), err = make_pipe();
    auto report = make_pipe();
    auto const launcher = ::getpid();
    auto const pid = ::fork();
    if (pid < 0) give_up("fork");
    if (pid == 0) {
      become(rank, port, listener, launcher, out.second.get(), err.second.get());
      auto const wrong = errno;
      (void)!::write(report.second.get(), &wrong, sizeof wrong);
      ::_exit(127);
    }
    (void)::setpgid(pid, pid);  // the child does the same: whoever comes first
    ranks_.push_back({pid, false});
    if (options_.prefix) {
      auto const prefix = fmt::format("[{}] ", rank);
      relays_.emplace_back(std::move(out.first), STDOUT_FILENO, prefix);
      relays_.emplace_back(std::move(err.first), STDERR_FILENO, prefix);
    }
    report.second.close();
    int wrong = 0;
    ssize_t n;
    do n = ::read(report.first.get(), &wrong, sizeof wrong);
    while (n < 0 && errno == EINTR);
    return n == sizeof wrong ? wrong : 0;
  }

  /// In the child: returns, with errno, only if the command cannot be executed.
  void become(int rank, std::uint16_t port, int listener, pid_t launcher, int out, int err) {
    (void)::setpgid(0, 0);
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != launcher) ::_exit(127);
    if (options_.prefix && (::dup2(out, STDOUT_FILENO) < 0 || ::dup2(err, STDERR_FILENO) < 0)) return;
    // A process group in the background that reads the terminal would be stopped.
    if (rank != 0 || ::isatty(STDIN_FILENO)) {
      file_descriptor const nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (nothing) (void)::dup2(nothing.get(), STDIN_FILENO);
    }
    auto const set = [](char const* name, std::string const& value) { ::setenv(name, value.c_str(), 1); };
    for (auto const* foreign :
         {"RONDO_RANK", "RONDO_WORLD_SIZE", "RONDO_LOCAL_RANK", "RONDO_LOCAL_WORLD_SIZE", "RONDO_ADDR", "RONDO_PORT",
          "RONDO_JOB", "RONDO_LISTEN_FD", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"})
      ::unsetenv(foreign);
    set("RANK", std::to_string(rank));
    set("LOCAL_RANK", std::to_string(rank));
    set("WORLD_SIZE", std::to_string(options_.ranks));
    set("LOCAL_WORLD_SIZE", std::to_string(options_.ranks));
    set("MASTER_ADDR", "127.0.0.1");
    set("MASTER_PORT", std::to_string(port));
    set("RONDO_TOKEN", options_.token);
    if (rank == 0) {
      set("RONDO_LISTEN_FD", std::to_string(listener));
      (void)::fcntl(listener, F_SETFD, 0);
    }
    std::vector<char*> arguments;
    for (auto& argument : options_.command) arguments.push_back(argument.data());
    arguments.push_back(nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    ::execvp(arguments.front(), arguments.data());
  }

  /// Sleeps until output, a signal or the next step of the ending, and deals with it.
  void turn(steady::time_point until) {
    std::vector<pollfd> polled{{signals_.get(), POLLIN, 0}};
    for (auto const& relay : relays_) polled.push_back({relay.fd(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), detail::poll_timeout(until)) < 0 && errno != EINTR) give_up("poll");
    for (std::size_t i = 0; i < relays_.size(); ++i)
      if (polled[i + 1].revents != 0 && !relays_[i].pass_on() && step_ == step::none) {
        say("nobody reads the output any more: ending the ranks");
        result_ = 128 + SIGPIPE;
        begin_ending(std::chrono::seconds(0));
      }
    if (polled[0].revents != 0) take_signals();
    if (steady::now() >= next_step_) escalate();
  }

  void take_signals() {
    signalfd_siginfo info;
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      auto const signal = static_cast<int>(info.ssi_signo);
      if (signal == SIGCHLD) continue;
      signal_all(signal);
      if (std::exchange(interrupted_, true)) begin_ending(std::chrono::seconds(0));
    }
    for (bool const killed : {true, false})  // one that was killed is why others exit: it is named first
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) look_after(static_cast<int>(rank), ranks_[rank], killed);
  }

  /// Deals with the end of a rank that was killed, or that exited.
  void look_after(int rank, child& c, bool killed) {
    siginfo_t info{};
    if (c.ended || ::waitid(P_PID, static_cast<id_t>(c.pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || !info.si_pid)
      return;
    if (killed != (info.si_code != CLD_EXITED)) return;
    c.ended = true;
    if (!killed && info.si_status == 0) return;
    if (step_ == step::none || result_ == 0) {
      auto const name = killed ? ::sigabbrev_np(info.si_status) : nullptr;
      say(killed ? fmt::format("rank {} was killed by signal {} (SIG{})", rank, info.si_status, name ? name : "?")
                 : fmt::format("rank {} exited with code {}", rank, info.si_status));
    }
    if (result_ == 0) result_ = killed ? 128 + info.si_status : info.si_status;
    begin_ending(std::chrono::duration_cast<steady::duration>(std::chrono::duration<double>(options_.grace)));
  }

  void begin_ending(steady::duration grace) {
    auto const at = steady::now() + grace;
    if (step_ == step::none) step_ = step::terminate;
    next_step_ = std::min(next_step_, at);
  }

  void escalate() {
    std::string names;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      if (!ranks_[rank].ended) names += fmt::format("{}{}", names.empty() ? "" : ", ", rank);
    if (names.empty()) {
      next_step_ = steady::time_point::max();
    } else if (step_ == step::terminate) {
      say(fmt::format("ending rank {}, still running", names));
      signal_all(SIGTERM);
      signal_all(SIGCONT);  // a stopped process sees SIGTERM only when it goes on
      step_ = step::kill;
      next_step_ = steady::now() + std::chrono::seconds(2);
    } else {
      say(fmt::format("killing rank {}, which ignored SIGTERM", names));
      signal_all(SIGKILL);
      next_step_ = steady::time_point::max();
    }
  }

  launch_options options_;
  sigset_t watched_{}, mask_before_{};
  file_descriptor signals_;
  std::vector<child> ranks_;
  std::vector<line_relay> relays_;
  int result_ = 0;
  bool interrupted_ = false;
  step step_ = step::none;
  steady::time_point next_step_ = steady::time_point::max();
};

std::string random_token() {
  std::string text;
  for (char const byte : detail::fresh_nonce()) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

}  // namespace

int launch(int argc, char** argv) {
  launch_options options;
  CLI::App app("Start local ranks of a program that uses rondo, and end with them", "rondo launch");
  app.add_option("-n,--ranks", options.ranks, "how many ranks to start")->check(CLI::Range(1, 4096))->required();
  app.add_flag("--prefix,!--no-prefix", options.prefix, "begin every line of output with [rank] (on)");
  app.add_option("--token", options.token, "job token; a random one if not given");
  app.add_option("--grace", options.grace, "seconds that the others have when a rank fails (5)")
      ->check(CLI::Range(0.0, 1e6));
  app.footer("rondo launch -n 4 -- ./trainer --epochs 3");

  auto const end = std::find_if(argv, argv + argc, [](char const* word) { return std::string_view(word) == "--"; });
  try {
    app.parse(static_cast<int>(end - argv), argv);
  } catch (CLI::ParseError const& e) { return app.exit(e); }
  for (auto word = end; word != argv + argc; ++word)
    if (word != end) options.command.emplace_back(*word);
  if (options.command.empty()) {
    say("no command: write it behind two dashes, as in  rondo launch -n 4 -- ./trainer");
    return 2;
  }
  try {
    if (options.token.empty()) options.token = random_token();
    return local_job(std::move(options)).run();
  } catch (std::exception const& e) {
    say(e.what());
    return 1;
  }
}

}  // namespace rondo::bench
