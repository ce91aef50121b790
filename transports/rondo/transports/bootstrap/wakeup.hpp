#pragma once

#include <rondo/detail/file_descriptor.hpp>
#include <rondo/error.hpp>
#include <rondo/transports/bootstrap/endpoint.hpp>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <string>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace rondo::inline v0::detail {

/// A bell that wakes a thread out of poll().
class wakeup {
 public:
  wakeup() : fd_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (!fd_) throw connect_error("no descriptor for the control thread (" + error_text(errno) + "): raise ulimit -n");
  }
  int fd() const noexcept { return fd_.get(); }
  void ring() noexcept {
    std::uint64_t const one = 1;
    (void)!::write(fd_.get(), &one, sizeof one);
  }
  void hush() noexcept {
    std::uint64_t count;
    (void)!::read(fd_.get(), &count, sizeof count);
  }

 private:
  file_descriptor fd_;
};

/// Starts a thread that takes no signals: the handlers of the program run on the program's threads.
template <class F>
std::thread quiet_thread(F body) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread thread(std::move(body));
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return thread;
  } catch (std::system_error const& e) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw connect_error(std::string("the control thread cannot be started (") + e.what() +
                        "): raise the limit on processes (ulimit -u)");
  }
}

}  // namespace rondo::inline v0::detail
