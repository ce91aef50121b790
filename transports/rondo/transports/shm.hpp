#pragma once

#include <rondo/detail/file_descriptor.hpp>
#include <rondo/detail/ring_streams.hpp>
#include <rondo/group.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <poll.h>
#include <random>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

namespace detail {

/// Random bytes that prove that two ranks can reach each other's sockets: whoever knows them got them through the
/// group.
using reach_token = std::array<char, 16>;

inline reach_token make_reach_token() {
  std::random_device device;
  reach_token token;
  for (std::size_t i = 0; i < token.size(); i += sizeof(std::uint32_t)) {
    std::uint32_t const word = device();
    std::memcpy(token.data() + i, &word, sizeof word);
  }
  return token;
}

/// An address in the abstract Unix name space: it exists only within one network name space of one host, and only as
/// long as a socket is bound to it.
inline sockaddr_un abstract_address(reach_token const& name, socklen_t& length) noexcept {
  static constexpr char prefix[] = "rondo-";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, prefix, sizeof prefix - 1);
  std::memcpy(address.sun_path + sizeof prefix, name.data(), name.size());
  length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + sizeof prefix + name.size());
  return address;
}

/// Waits until `fd` can be read; false when the deadline has passed.
inline bool readable_before(int fd, group::clock::time_point deadline) noexcept {
  for (;;) {
    auto const left = std::chrono::ceil<std::chrono::milliseconds>(deadline - group::clock::now()).count();
    pollfd waiting{fd, POLLIN, 0};
    int const n = ::poll(&waiting, 1, static_cast<int>(std::min<long>(std::max<long>(left, 0), 1000)));
    if (n > 0) return true;
    if (left <= 0) return false;
  }
}

/// Sends a descriptor over a Unix socket.
inline bool send_descriptor(int socket, int fd) noexcept {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

/// Takes a descriptor that send_descriptor has sent; empty if there was none.
inline file_descriptor receive_descriptor(int socket) noexcept {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return {};
  cmsghdr const* const header = CMSG_FIRSTHDR(&message);
  if (!header || header->cmsg_type != SCM_RIGHTS) return {};
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return file_descriptor(fd);
}

}  // namespace detail

/// Byte streams between processes of one host, through anonymous memory that they hand each other.
///
/// Nothing has a name, so nothing is left behind when a rank is killed. That two ranks are on one host is proved by
/// reaching each other's socket with a token, never believed from a host name.
class shm : public detail::ring_streams {
 public:
  static constexpr std::string_view name = "shm";

  /// Connects the ranks of a group. Every rank must call; blocks until all have. Throws connect_error naming a rank
  /// that is on another host, and error with sizes if memory is short.
  static shm connect(std::shared_ptr<group> const& g,
                     group::clock::time_point deadline = group::clock::now() + std::chrono::minutes(5)) {
    auto const rank = static_cast<std::size_t>(g->rank()), size = static_cast<std::size_t>(g->size());
    auto const layout = detail::inbox_layout::of(g->size());
    std::vector<detail::inbox> inboxes(size);
    inboxes[rank] = detail::make_inbox(layout);

    auto const token = detail::make_reach_token();
    socklen_t length = 0;
    sockaddr_un address = detail::abstract_address(token, length);
    detail::file_descriptor const door(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (!door || ::bind(door.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        ::listen(door.get(), g->size()) != 0)
      throw connect_error(std::string("cannot open a Unix socket (") + std::strerror(errno) +
                          "): allow AF_UNIX sockets in this container or use tcp");

    auto const tokens = g->exchange({token.data(), token.size()}, deadline);
    // A connection waits in the backlog until it is accepted, so all ranks may ask first and answer afterwards.
    std::vector<detail::file_descriptor> asked(size);
    for (std::size_t q = 0; q < size; ++q) {
      if (q == rank) continue;
      detail::reach_token theirs{};
      std::memcpy(theirs.data(), tokens[q].data(), std::min(theirs.size(), tokens[q].size()));
      address = detail::abstract_address(theirs, length);
      asked[q] = detail::file_descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
      if (::connect(asked[q].get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
          ::send(asked[q].get(), theirs.data(), theirs.size(), MSG_NOSIGNAL) < 0)
        fail_unreachable(*g, static_cast<rank_t>(q));
    }
    for (std::size_t answered = 1; answered < size;) {
      if (!detail::readable_before(door.get(), deadline)) fail_late(*g, answered);
      detail::file_descriptor const caller(::accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC));
      detail::reach_token shown{};
      if (!caller || !detail::readable_before(caller.get(), std::min(deadline, group::clock::now() + patience)) ||
          ::recv(caller.get(), shown.data(), shown.size(), 0) != static_cast<ssize_t>(shown.size()) || shown != token)
        continue;  // a stranger
      if (detail::send_descriptor(caller.get(), inboxes[rank]->get())) ++answered;
    }
    for (std::size_t q = 0; q < size; ++q) {
      if (q == rank) continue;
      detail::file_descriptor theirs;
      if (detail::readable_before(asked[q].get(), deadline)) theirs = detail::receive_descriptor(asked[q].get());
      if (!theirs) fail_unreachable(*g, static_cast<rank_t>(q));
      inboxes[q] = std::make_shared<detail::file_descriptor const>(std::move(theirs));
    }
    return shm(g->rank(), layout, inboxes);
  }

 private:
  using ring_streams::ring_streams;

  static constexpr std::chrono::seconds patience{2};  // for a caller to show its token

  [[noreturn]] static void fail_unreachable(group& g, rank_t q) {
    failure const why{failure::kind::other, q,
                      "ranks " + std::to_string(g.rank()) + " and " + std::to_string(q) +
                          " cannot share memory, they are on different hosts or in different containers: use tcp"};
    g.report(why);
    throw connect_error(why.what, q);
  }

  [[noreturn]] static void fail_late(group& g, std::size_t answered) {
    if (g.failed()) g.verdict().raise();
    throw connect_error("only " + std::to_string(answered) + " of " + std::to_string(g.size()) +
                        " ranks came to connect over shared memory before the deadline: let every rank connect");
  }
};

}  // namespace rondo::inline v0
