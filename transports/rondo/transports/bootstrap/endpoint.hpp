#pragma once

#include <rondo/detail/file_descriptor.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace rondo::inline v0::detail {

using steady = std::chrono::steady_clock;

/// The time left for poll(): rounded up, so that a wait never ends just before its deadline; at most an hour.
inline int poll_timeout(steady::time_point until) noexcept {
  auto const left = until - steady::now();
  if (left <= steady::duration::zero()) return 0;
  if (left > std::chrono::hours(1)) return 3'600'000;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

inline std::string error_text(int code) { return std::generic_category().message(code); }

/// An address that a stream socket can listen at or connect to.
struct endpoint {
  sockaddr_storage address{};
  socklen_t length = 0;
  std::string text;  ///< for messages

  sockaddr const* raw() const noexcept { return reinterpret_cast<sockaddr const*>(&address); }
};

/// All addresses of a host name or a literal. Throws connect_error if there is none.
inline std::vector<endpoint> resolve(std::string const& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  auto const wrong = ::getaddrinfo(host.c_str(), text_of({port}).c_str(), &hints, &list);
  if (wrong != 0)
    throw connect_error(text_of({"the address \"", host, "\" of rank 0 cannot be resolved (", ::gai_strerror(wrong),
                                 "): set MASTER_ADDR to a host name or an IP address"}));
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> const owner(list, [](addrinfo* p) { ::freeaddrinfo(p); });
  std::vector<endpoint> found;
  for (auto const* entry = list; entry; entry = entry->ai_next) {
    endpoint e;
    if (entry->ai_addrlen > sizeof e.address) continue;
    std::memcpy(&e.address, entry->ai_addr, entry->ai_addrlen);
    e.length = entry->ai_addrlen;
    e.text = host.find(':') == host.npos ? text_of({host, ":", port}) : text_of({"[", host, "]:", port});
    found.push_back(std::move(e));
  }
  return found;
}

/// Every address of this host: IPv6 and IPv4 in one socket where there is IPv6, else IPv4.
inline std::vector<endpoint> any_address(std::uint16_t port) {
  std::vector<endpoint> found(2);
  auto& six = reinterpret_cast<sockaddr_in6&>(found[0].address);
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  found[0].length = sizeof six;
  auto& four = reinterpret_cast<sockaddr_in&>(found[1].address);
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  found[1].length = sizeof four;
  for (auto& e : found) e.text = text_of({"port ", port});
  return found;
}

/// A place on this host that has no file, so that nothing is left behind when its owner is killed.
inline endpoint abstract_endpoint(std::string_view name) {
  endpoint e;
  auto& local = reinterpret_cast<sockaddr_un&>(e.address);
  local.sun_family = AF_UNIX;
  auto const n = std::min(name.size(), sizeof local.sun_path - 1);
  std::memcpy(local.sun_path + 1, name.data(), n);
  e.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + n);
  e.text = "the Unix socket @" + std::string(name);
  return e;
}

/// Sends small frames at once, and lets the kernel find out within half a minute that the host at the other end is
/// gone.
inline void tune(int fd) noexcept {
  auto const set = [fd](int level, int name, int value) { (void)::setsockopt(fd, level, name, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
}

/// A socket that listens at `at`; empty with errno set if that fails.
inline file_descriptor listen_at(endpoint const& at) noexcept {
  file_descriptor fd(::socket(at.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fd;
  int const yes = 1, no = 0;
  if (at.address.ss_family != AF_UNIX) (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (at.address.ss_family == AF_INET6) (void)::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  if (::bind(fd.get(), at.raw(), at.length) != 0 || ::listen(fd.get(), 4096) != 0) {
    auto const wrong = errno;
    fd.close();
    errno = wrong;
  }
  return fd;
}

/// A connected non-blocking socket; empty with errno set if nobody answers until the deadline.
inline file_descriptor connect_to(endpoint const& to, steady::time_point deadline) noexcept {
  file_descriptor fd(::socket(to.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fd;
  int wrong = ::connect(fd.get(), to.raw(), to.length) == 0 ? 0 : errno;
  if (wrong == EINPROGRESS || wrong == EINTR) {
    pollfd wait{fd.get(), POLLOUT, 0};
    int ready;
    do ready = ::poll(&wait, 1, poll_timeout(deadline));
    while (ready < 0 && errno == EINTR);
    socklen_t size = sizeof wrong;
    if (ready <= 0)
      wrong = ETIMEDOUT;
    else if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &wrong, &size) != 0)
      wrong = errno;
  }
  if (wrong != 0) fd.close();
  errno = wrong;
  return fd;
}

/// Whether the other end of a Unix socket belongs to this user; true for any other socket.
inline bool same_user(int fd) noexcept {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) != 0) return false;
  if (own.ss_family != AF_UNIX) return true;
  ucred peer{};
  length = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

}  // namespace rondo::inline v0::detail
