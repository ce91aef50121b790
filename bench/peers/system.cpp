#include "peers/system.hpp"

#include "text.hpp"
#include "world.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace rondo::bench::peers {
namespace {

constexpr std::chrono::milliseconds glance{100};  // how often a launcher is looked at that may have ended

/// Listens in the abstract name space: nothing is left behind, whatever happens.
int listen_at(std::string const& address) {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::copy(address.begin(), address.end(), where.sun_path + 1);
  auto const bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address.size());
  int const fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr const*>(&where), bytes) != 0 || ::listen(fd, most_ranks) != 0)
    throw world_error(fmt::format("no socket can be made for the ranks of a peer: {}.", std::strerror(errno)));
  return fd;
}

bool readable(int fd, std::chrono::milliseconds patience) {
  pollfd wait{fd, POLLIN, 0};
  return ::poll(&wait, 1, static_cast<int>(patience.count())) > 0;
}

void close_once(int& fd) {
  if (fd >= 0) ::close(std::exchange(fd, -1));
}

}  // namespace

system::system(std::string id, std::vector<std::string> command, int ranks, std::size_t shared_bytes, bool pin)
    : id_(std::move(id)), name_(id_), members_(static_cast<std::size_t>(ranks)), output_(std::tmpfile(), std::fclose) {
  static int systems = 0;
  auto const bytes = (sizeof(region) + 4095) / 4096 * 4096 + shared_bytes;
  memory_ = ::memfd_create("rondo peer", MFD_CLOEXEC);
  if (memory_ >= 0 && ::ftruncate(memory_, static_cast<off_t>(bytes)) == 0) {
    void* const data = ::mmap(nullptr, sizeof(region), PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0);
    if (data != MAP_FAILED) region_ = static_cast<region*>(data);
  }
  if (region_ == nullptr || !output_)
    throw world_error(fmt::format("there is no memory for the ranks of {}: {}.", id_, std::strerror(errno)));
  region_->pin = pin;
  auto const address = fmt::format("rondo peers {} {}", ::getpid(), systems++);
  listener_ = listen_at(address);
  start(std::move(command), address);
}

system::~system() {
  for (auto& m : members_) close_once(m.socket);
  auto const patience = clock::now() + patience_;
  while (launcher_ > 0 && !ended()) {
    if (clock::now() > patience) {
      // Launchers may put ranks into process groups of their own.
      for (auto const& m : members_)
        if (m.pid > 0) ::kill(m.pid, SIGKILL);
      ::kill(-launcher_, SIGKILL);
    }
    ::usleep(5000);
  }
  if (launcher_ > 0) ::waitpid(launcher_, nullptr, 0);
  close_once(listener_);
  close_once(memory_);
  ::munmap(region_, sizeof(region));
}

void system::start(std::vector<std::string> command, std::string_view address) {
  command.emplace_back(address);
  command.push_back(fmt::format("/proc/{}/fd/{}", ::getpid(), memory_));
  std::vector<char*> arguments;
  for (auto& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  auto const parent = ::getpid();
  launcher_ = ::fork();
  if (launcher_ < 0) throw world_error("no process could be started: the limit of processes is reached (ulimit -u).");
  if (launcher_ > 0) return;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  int const nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  for (int const fd : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(::fileno(output_.get()), fd);
  ::execvp(arguments.front(), arguments.data());
  ::_exit(127);
}

bool system::ended() const {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(launcher_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

std::string system::last_words() const {
  std::string text(4096, '\0');
  auto const size = ::lseek(::fileno(output_.get()), 0, SEEK_END);
  auto const got = ::pread(::fileno(output_.get()), text.data(), text.size(), std::max<off_t>(0, size - 4096));
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  std::string last;
  for (std::size_t at = 0; at < text.size();) {
    auto const end = std::min(text.find('\n', at), text.size());
    auto const line = std::string_view(text).substr(at, end - at);
    if (line.find_first_not_of(" -=\r\t") != line.npos) last = line;
    at = end + 1;
  }
  return last.empty() ? "" : fmt::format(" Its last words: {}", last);
}

void system::give_up(std::string const& why) {
  patience_ = std::chrono::seconds(0);
  throw world_error(fmt::format("{} with {} ranks is given up: {}{}", name_, members_.size(), why, last_words()));
}

int system::rank_of(greeting const& hello, int socket) {
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.uid != ::geteuid()) return -1;
  auto const expected = static_cast<int>(members_.size());
  if (hello.ranks != expected)
    give_up(
        fmt::format("its launcher started a world of {} ranks: the library and its mpirun do not match.", hello.ranks));
  return hello.rank >= 0 && hello.rank < expected ? hello.rank : -1;
}

void system::welcome(clock::time_point deadline) {
  for (std::size_t here = 0; here < members_.size();) {
    if (!readable(listener_, glance)) {
      if (ended()) give_up("its launcher ended before its ranks were there.");
      if (clock::now() > deadline) give_up(fmt::format("only {} of its ranks were there in time.", here));
      continue;
    }
    int const socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    greeting hello{};
    if (socket < 0) continue;
    int const rank = readable(socket, std::chrono::seconds(5)) &&
                             ::recv(socket, &hello, sizeof hello, 0) == static_cast<ssize_t>(sizeof hello)
                         ? rank_of(hello, socket)
                         : -1;
    if (rank < 0 || members_[static_cast<std::size_t>(rank)].socket >= 0) {
      ::close(socket);
      continue;
    }
    ucred who{};
    socklen_t size = sizeof who;
    ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size);
    members_[static_cast<std::size_t>(rank)] = {socket, who.pid};
    hello.name[sizeof hello.name - 1] = '\0';
    name_ = hello.name;
    ++here;
  }
}

outcome_of_turn system::play(turn const& t, clock::time_point deadline) {
  auto const size = format_bytes(t.bytes);
  for (auto const& m : members_)
    if (::send(m.socket, &t, sizeof t, MSG_NOSIGNAL) < 0) give_up(fmt::format("a rank has ended before {}.", size));
  outcome_of_turn all;
  for (std::size_t r = 0; r < members_.size(); ++r) {
    auto const left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now());
    if (!readable(members_[r].socket, std::max(left, glance)))
      give_up(fmt::format("rank {} did not come back from {} in time: it hangs.", r, size));
    outcome done{};
    if (::recv(members_[r].socket, &done, sizeof done, 0) != static_cast<ssize_t>(sizeof done))
      give_up(fmt::format("rank {} ended in {}.", r, size));
    done.trouble[sizeof done.trouble - 1] = '\0';
    if (done.trouble[0] != '\0') give_up(fmt::format("rank {} in {}: {}", r, size, done.trouble));
    all.wrong += done.wrong;
  }
  all.slowest_us.resize(static_cast<std::size_t>(t.timed), 0.0);
  for (std::size_t r = 0; r < members_.size(); ++r)
    for (std::size_t i = 0; i < all.slowest_us.size(); ++i)
      all.slowest_us[i] = std::max(all.slowest_us[i], region_->times_us[r][i]);
  return all;
}

}  // namespace rondo::bench::peers
