#pragma once

#include <rondo/transports/bootstrap.hpp>

#include <arpa/inet.h>
#include <chrono>
#include <csignal>
#include <exception>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace bootstrap_test {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using group_ptr = std::shared_ptr<rondo::group>;

/// A job on a port of the loopback that the system chose; the socket listens before any rank starts.
class job {
 public:
  explicit job(int size, std::string token = "secret") : size_(size), token_(std::move(token)) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    if (::bind(fd_, reinterpret_cast<sockaddr*>(&at), length) != 0 || ::listen(fd_, 1024) != 0 ||
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &length) != 0)
      throw std::runtime_error("no port on the loopback");
    port_ = ntohs(at.sin_port);
  }
  ~job() { release(); }
  job(job const&) = delete;
  job& operator=(job const&) = delete;

  std::uint16_t port() const { return port_; }
  int size() const { return size_; }

  /// Lets rank 0 bind the port itself.
  void release() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  rondo::environment rank(int r) const {
    rondo::environment env;
    env.rank = r;
    env.size = size_;
    env.address = "127.0.0.1";
    env.port = port_;
    env.token = token_;
    env.listen_fd = r == 0 ? fd_ : -1;
    return env;
  }
  group_ptr join(int r, std::chrono::milliseconds deadline = 20s) const {
    return rondo::join(rank(r), {.deadline = deadline});
  }

 private:
  int size_;
  std::string token_;
  int fd_ = -1;
  std::uint16_t port_ = 0;
};

/// Runs body(rank) on a thread for each rank; returns what each threw, "" if nothing.
inline std::vector<std::string> on_threads(int size, std::function<void(int)> const& body) {
  std::vector<std::string> thrown(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r)
    threads.emplace_back([&, r] {
      try {
        body(r);
      } catch (std::exception const& e) { thrown[static_cast<std::size_t>(r)] = e.what(); }
    });
  for (auto& t : threads) t.join();
  return thrown;
}

inline void expect_none(std::vector<std::string> const& thrown) {
  for (std::size_t r = 0; r < thrown.size(); ++r) EXPECT_EQ(thrown[r], "") << "rank " << r;
}

/// A child process; killed and reaped at the latest when the object goes.
class process {
 public:
  explicit process(std::function<int()> const& body) : pid_(::fork()) {
    if (pid_ != 0) return;
    int status = 99;
    try {
      status = body();
    } catch (std::exception const& e) { std::fprintf(stderr, "child: %s\n", e.what()); }
    ::_exit(status);
  }
  process(process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  ~process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }

  void send(int signal) const { ::kill(pid_, signal); }

  /// The exit code, or minus the signal.
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

/// Polls the flag as a collective would; true if it turned within `limit`.
inline bool fails_within(rondo::group& g, std::chrono::milliseconds limit) {
  auto const until = clock::now() + limit;
  while (!g.failed() && clock::now() < until) std::this_thread::sleep_for(2ms);
  return g.failed();
}

inline double seconds_since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

}  // namespace bootstrap_test
