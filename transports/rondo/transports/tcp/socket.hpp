#pragma once

#include <rondo/detail/file_descriptor.hpp>
#include <rondo/transports/tcp/ip_address.hpp>
#include <rondo/transports/tcp/options.hpp>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <span>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rondo::inline v0::detail {

/// True for errors of a non-blocking call that only say: not now.
inline bool not_now(int code) noexcept {
  return code == EAGAIN || code == EWOULDBLOCK || code == EINTR || code == ENOBUFS || code == ENOMEM;
}

/// A non-blocking TCP socket. The calls return what the system returns, and leave errno.
class tcp_socket {
 public:
  tcp_socket() = default;
  explicit tcp_socket(int descriptor) noexcept : file_(descriptor) {}
  static tcp_socket open(int family) noexcept {
    return tcp_socket(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  }

  int descriptor() const noexcept { return file_.get(); }
  explicit operator bool() const noexcept { return bool(file_); }

  tcp_socket accept() const noexcept {
    return tcp_socket(::accept4(descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  }

  /// Port 0 lets the system choose.
  bool bind(ip_address const& address, std::uint16_t port) const noexcept {
    sockaddr_storage a;
    auto const size = address.fill(a, port);
    if (address.family() == AF_INET6) set(IPPROTO_IPV6, IPV6_V6ONLY, 1);
    return ::bind(descriptor(), reinterpret_cast<sockaddr const*>(&a), size) == 0;
  }
  bool connect(ip_address const& address, std::uint16_t port) const noexcept {
    sockaddr_storage a;
    auto const size = address.fill(a, port);
    return ::connect(descriptor(), reinterpret_cast<sockaddr const*>(&a), size) == 0;
  }

  bool listen() const noexcept { return ::listen(descriptor(), SOMAXCONN) == 0; }

  std::uint16_t local_port() const noexcept {
    sockaddr_storage a{};
    socklen_t size = sizeof a;
    ::getsockname(descriptor(), reinterpret_cast<sockaddr*>(&a), &size);
    return ntohs(a.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(a).sin_port
                                        : reinterpret_cast<sockaddr_in6&>(a).sin6_port);
  }

  /// The error that a connection met, and 0 once it stands.
  int take_error() const noexcept {
    int code = 0;
    socklen_t size = sizeof code;
    return ::getsockopt(descriptor(), SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : errno;
  }

  ::ssize_t send(std::span<std::byte const> bytes, bool more = false) const noexcept {
    return ::send(descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL | (more ? MSG_MORE : 0));
  }
  ::ssize_t receive(std::span<std::byte> bytes) const noexcept {
    return ::recv(descriptor(), bytes.data(), bytes.size(), 0);
  }

  /// What connections to or from `address`, at which a rank listens, shall be like. Buffer sizes and pacing count from
  /// the handshake of a connection, so they are set before it and, for a listener, inherited.
  void tune(tcp_options const& options, ip_address const& address) const noexcept {
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    // What never leaves the machine has no link to share: pacing it, as some hosts' choice of congestion control does,
    // only makes it late. Every kernel has this one, for every user; refusals change nothing.
    if (address.loopback()) set(IPPROTO_TCP, TCP_CONGESTION, "reno");
    if (options.send_buffer > 0) set(SOL_SOCKET, SO_SNDBUF, options.send_buffer);
    if (options.receive_buffer > 0) set(SOL_SOCKET, SO_RCVBUF, options.receive_buffer);
  }

  /// Sends at once what send(…, more) holds back.
  void push() const noexcept { set(IPPROTO_TCP, TCP_NODELAY, 1); }

  void end_output() const noexcept { ::shutdown(descriptor(), SHUT_WR); }

  /// Drops what has arrived; true if closing now cannot harm what the peer has yet to receive.
  bool settled() const noexcept {
    std::array<std::byte, std::size_t{16} << 10> unwanted;
    for (int left = 64; left > 0; --left)  // not for ever, if the peer goes on sending
      if (auto const n = receive(unwanted); n <= 0) {
        if (n == 0 || !not_now(errno)) return true;
        break;
      }
    int unacknowledged = 0;
    return ::ioctl(descriptor(), SIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0;
  }

 private:
  void set(int level, int name, int value) const noexcept {
    ::setsockopt(descriptor(), level, name, &value, sizeof value);
  }
  void set(int level, int name, std::string_view value) const noexcept {
    ::setsockopt(descriptor(), level, name, value.data(), static_cast<socklen_t>(value.size()));
  }

  file_descriptor file_;
};

}  // namespace rondo::inline v0::detail
