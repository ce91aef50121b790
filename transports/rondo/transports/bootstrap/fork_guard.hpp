#pragma once

#include <fcntl.h>
#include <mutex>
#include <pthread.h>
#include <set>
#include <unistd.h>
#include <utility>

namespace rondo::inline v0::detail {

/// Keeps a socket out of forked children, such as the workers of a data loader: while they held a copy, nobody could
/// see that this process has died. In the child the descriptor leads to /dev/null, so that its number stays taken.
class fork_guard {
 public:
  fork_guard() noexcept = default;
  explicit fork_guard(int fd) : fd_(fd) {
    auto& all = registry::instance();
    std::scoped_lock const lock(all.mutex);
    all.sockets.insert(fd);
  }
  fork_guard(fork_guard&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  fork_guard& operator=(fork_guard&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~fork_guard() { release(); }

  /// To be called before the descriptor is closed.
  void release() noexcept {
    if (fd_ < 0) return;
    auto& all = registry::instance();
    std::scoped_lock const lock(all.mutex);
    all.sockets.erase(std::exchange(fd_, -1));
  }

 private:
  struct registry {
    std::mutex mutex;
    std::set<int> sockets;

    static registry& instance() {
      static registry& all = *[] {
        ::pthread_atfork([] { instance().mutex.lock(); }, [] { instance().mutex.unlock(); },
                         [] { instance().in_child(); });
        return new registry;  // never destroyed: threads may outlive main()
      }();
      return all;
    }

    void in_child() noexcept {
      int const nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
      for (int const socket : sockets) nothing < 0 ? (void)::close(socket) : (void)::dup3(nothing, socket, O_CLOEXEC);
      if (nothing >= 0) ::close(nothing);
      mutex.unlock();
    }
  };

  int fd_ = -1;
};

}  // namespace rondo::inline v0::detail
