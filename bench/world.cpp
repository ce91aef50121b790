#include "world.hpp"

#include "connect.hpp"
#include "cores.hpp"
#include "shared_region.hpp"
#include "text.hpp"

#include <array>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace rondo::bench {
namespace {

using clock = std::chrono::steady_clock;

constexpr char failure_mark = '!';

/// The lines that ranks write to the command: each is one atomic write, so that ranks may share the pipe.
class line_pipe {
 public:
  line_pipe() {
    if (::pipe(ends_.data()) != 0) throw world_error("no pipe could be made: too many files are open.");
  }
  ~line_pipe() {
    close_end(0);
    close_end(1);
  }
  line_pipe(line_pipe const&) = delete;
  line_pipe& operator=(line_pipe const&) = delete;

  void close_end(std::size_t end) {
    if (ends_[end] >= 0) ::close(std::exchange(ends_[end], -1));
  }

  void write(std::string_view text) const {
    std::string line(text.substr(0, PIPE_BUF - 2));
    line += '\n';
    while (::write(ends_[1], line.data(), line.size()) < 0 && errno == EINTR) {}
  }

  /// Hands over complete lines that arrive within the time; false at the end.
  bool read(std::chrono::milliseconds patience, line_sink const& sink) {
    pollfd wait{ends_[0], POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(patience.count())) <= 0) return true;
    std::array<char, 65536> buffer;
    auto const got = ::read(ends_[0], buffer.data(), buffer.size());
    if (got < 0) return errno == EINTR;
    if (got == 0) return false;
    pending_.append(buffer.data(), static_cast<std::size_t>(got));
    for (std::size_t end; (end = pending_.find('\n')) != std::string::npos; pending_.erase(0, end + 1))
      sink(std::string_view(pending_).substr(0, end));
    return true;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
  std::string pending_;
};

/// Runs body as one rank; a failure is reported once, and ends the others. Returns whether it went well.
bool guarded(shared_region& region, line_pipe const& pipe, int rank, std::function<void()> const& body) {
  auto const fail = [&](char const* what) {
    constexpr std::string_view library = "rondo: ";
    auto text = std::string_view(what);
    if (text.starts_with(library)) text.remove_prefix(library.size());
    if (!region.aborted()) pipe.write(fmt::format("{}rank {}: {}", failure_mark, rank, text));
    region.abort();
    return false;
  };
  try {
    body();
    return true;
  } catch (std::exception const& e) { return fail(e.what()); } catch (...) {
    return fail("an unknown exception.");
  }
}

class children {
 public:
  ~children() { reap(std::chrono::seconds(0)); }

  /// Forks; the child runs main and leaves with its result. The name is for messages.
  void start(std::string name, std::function<int()> const& main) {
    std::fflush(nullptr);
    auto const parent = ::getpid();
    auto const pid = ::fork();
    if (pid < 0) throw world_error("no process could be started: the limit of processes is reached (ulimit -u).");
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      ::_exit(main());
    }
    living_.push_back({pid, std::move(name)});
  }

  /// The sentence about a child that ended by a signal or with an error, if one has.
  std::optional<std::string> check() {
    std::optional<std::string> bad;
    std::erase_if(living_, [&](child const& c) {
      int status = 0;
      if (::waitpid(c.pid, &status, WNOHANG) != c.pid) return false;
      if (WIFSIGNALED(status))
        bad = fmt::format("{} was ended by signal {} ({}).", c.name, WTERMSIG(status), ::strsignal(WTERMSIG(status)));
      else if (WEXITSTATUS(status) != 0 && !bad)
        bad = fmt::format("{} ended with status {}.", c.name, WEXITSTATUS(status));
      return true;
    });
    return bad;
  }

  bool any() const { return !living_.empty(); }

  /// Waits for all; those that outlive the patience are killed.
  std::optional<std::string> reap(std::chrono::milliseconds patience) {
    auto const give_up = std::chrono::steady_clock::now() + patience;
    std::optional<std::string> bad;
    while (any()) {
      if (auto const found = check(); found && !bad) bad = found;
      if (!any()) break;
      if (std::chrono::steady_clock::now() >= give_up)
        for (auto const& c : living_) ::kill(c.pid, SIGKILL);
      ::usleep(2000);
    }
    return bad;
  }

 private:
  struct child {
    pid_t pid;
    std::string name;
  };
  std::vector<child> living_;
};

/// Connected pairs of sockets along the ring of ranks, for the TCP probe. Two ranks have one between them, so that what
/// goes one way acknowledges what went the other.
class probe_sockets {
 public:
  explicit probe_sockets(int ranks) {
    for (int r = 0; r < (ranks == 2 ? 1 : ranks); ++r) pairs_.push_back(loopback_pair());
  }
  ~probe_sockets() {
    for (auto const& pair : pairs_)
      for (int const fd : pair) ::close(fd);
  }
  probe_sockets(probe_sockets const&) = delete;
  probe_sockets& operator=(probe_sockets const&) = delete;

  int to_next(int rank) const {
    auto const r = static_cast<std::size_t>(rank);
    return pairs_.size() == 1 ? pairs_[0][r] : pairs_[r][0];
  }
  int from_previous(int rank) const {
    auto const r = static_cast<std::size_t>(rank);
    return pairs_.size() == 1 ? pairs_[0][r] : pairs_[(r + pairs_.size() - 1) % pairs_.size()][1];
  }

 private:
  std::vector<std::array<int, 2>> pairs_;
};

}  // namespace

std::vector<double> coordinator::gather(std::span<double const> mine) {
  std::vector<std::uint64_t> words;
  for (double const d : mine) words.push_back(std::bit_cast<std::uint64_t>(d));
  std::vector<double> all;
  for (auto const word : gather(std::span<std::uint64_t const>(words))) all.push_back(std::bit_cast<double>(word));
  return all;
}

double coordinator::agree(double mine) { return gather(std::span<double const>(&mine, 1)).front(); }

void run_world(world_spec const& spec, rank_body const& body, line_sink const& sink) {
  bool const over_tcp = spec.transport == "tcp";
  bool const addressable = spec.transport == "in_process" || spec.transport == "shm" || spec.transport == "multi";
  auto const p = static_cast<std::size_t>(spec.ranks);
  shared_region region(spec.ranks);
  shared_memory const memory(addressable ? 2 * p * spec.probe_bytes : 0);
  std::optional<probe_sockets> sockets;
  if (over_tcp && spec.probe_bytes > 0 && spec.ranks > 1) sockets.emplace(spec.ranks);
  line_pipe pipe;
  auto const cores = allowed_cores();

  auto const run_rank = [&](int rank, comm& c) {
    if (spec.pin) pin_rank(cores, rank, spec.ranks);
    shared_coordinator together(region, rank, spec.deadline);
    member me(rank, spec.ranks, spec.transport, c, together, [&](std::string_view line) { pipe.write(line); });
    me.probe.memory = memory.bytes();
    if (sockets) {
      me.probe.to_next = sockets->to_next(rank);
      me.probe.from_previous = sockets->from_previous(rank);
      if (crowded(cores, spec.ranks)) me.probe.spin = {};
    }
    body(me);
    together.barrier();
  };

  environment who;
  who.size = who.local_size = spec.ranks;
  who.job = fmt::format("rondo bench {} {}", ::getpid(), clock::now().time_since_epoch().count());
  who.launcher = "rondo";
  children ranks;
  if (spec.transport == "in_process") {
    ranks.start("the process of all ranks", [&] {
      pipe.close_end(0);
      bool const started = guarded(region, pipe, 0, [&] {
        run_threads(spec.ranks, spec.deadline,
                    [&](int rank, comm& c) { guarded(region, pipe, rank, [&] { run_rank(rank, c); }); });
      });
      return started && !region.aborted() ? 0 : 1;
    });
  } else {
    for (int r = 0; r < spec.ranks; ++r)
      ranks.start(fmt::format("rank {}", r), [&] {
        pipe.close_end(0);
        if (spec.pin) pin_rank(cores, r, spec.ranks);
        who.rank = who.local_rank = r;
        return guarded(region, pipe, r, [&] { with_process_rank(who, spec.transport, spec.deadline, run_rank); }) ? 0
                                                                                                                  : 1;
      });
  }
  pipe.close_end(1);

  std::optional<std::string> reported, died;
  auto const take = [&](std::string_view line) {
    if (line.empty() || line.front() != failure_mark)
      sink(line);
    else if (!reported)
      reported = std::string(line.substr(1));
  };
  while (!reported && !died && pipe.read(std::chrono::milliseconds(100), take)) died = ranks.check();
  if (reported || died) region.abort();
  auto const ended = ranks.reap(std::chrono::seconds(5));
  if (!died) died = ended;
  while (died && !reported && pipe.read(std::chrono::milliseconds(0), take)) {}
  if (reported || died)
    throw world_error(fmt::format("The run over {} with {} ranks failed: {}", spec.transport, spec.ranks,
                                  reported ? *reported : *died));
}

}  // namespace rondo::bench
