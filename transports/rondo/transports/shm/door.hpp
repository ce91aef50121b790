#pragma once

#include <rondo/detail/file_descriptor.hpp>
#include <rondo/error.hpp>
#include <rondo/group.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <random>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <utility>

namespace rondo::inline v0::detail {

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

/// Sends descriptors over a Unix socket.
template <std::size_t N>
bool send_descriptors(int socket, std::array<int, N> const& fds) noexcept {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fds)> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fds);
  std::memcpy(CMSG_DATA(header), fds.data(), sizeof fds);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

/// Takes the descriptors that send_descriptors has sent; all are empty if there were none.
template <std::size_t N>
std::array<file_descriptor, N> receive_descriptors(int socket) noexcept {
  char byte = 0;
  iovec data{&byte, 1};
  std::array<int, N> fds;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof fds)> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  std::array<file_descriptor, N> received;
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return received;
  cmsghdr const* const header = CMSG_FIRSTHDR(&message);
  if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof fds)) return received;
  std::memcpy(fds.data(), CMSG_DATA(header), sizeof fds);
  std::transform(fds.begin(), fds.end(), received.begin(), [](int fd) { return file_descriptor(fd); });
  return received;
}

/// A socket by which ranks of one host find each other: whoever reaches it runs under the same kernel and in the same
/// network name space, which no host name proves.
///
/// Its address lies in the abstract name space, so that nothing is left behind, and is made of a random token that only
/// the ranks of the group are told.
class door {
 public:
  using token = std::array<char, 16>;

  /// Opens a door with room for so many callers. Throws connect_error where the system has no such sockets.
  explicit door(int callers) : token_(random_token()), socket_(make_socket()) {
    socklen_t length = 0;
    sockaddr_un const at = address(token_, length);
    if (!socket_ || ::bind(socket_.get(), reinterpret_cast<sockaddr const*>(&at), length) != 0 ||
        ::listen(socket_.get(), callers) != 0)
      throw connect_error(std::string("cannot open a Unix socket (") + std::strerror(errno) +
                          "): allow AF_UNIX sockets in this container or use tcp");
  }

  /// What a caller must know.
  std::string_view secret() const noexcept { return {token_.data(), token_.size()}; }

  /// A connection with the door of that secret, which waits there until it is let in; empty if it cannot be reached.
  static file_descriptor knock(std::string_view secret) noexcept {
    if (secret.size() != sizeof(token)) return {};
    token theirs;
    std::copy(secret.begin(), secret.end(), theirs.begin());
    socklen_t length = 0;
    sockaddr_un const at = address(theirs, length);
    file_descriptor call = make_socket();
    bool const there = ::connect(call.get(), reinterpret_cast<sockaddr const*>(&at), length) == 0 &&
                       ::send(call.get(), theirs.data(), theirs.size(), MSG_NOSIGNAL) >= 0;
    return there ? std::move(call) : file_descriptor();
  }

  /// The next caller; empty if it does not know the secret. Waits where nobody is there: see rings_before().
  file_descriptor let_in(group::clock::time_point deadline) const noexcept {
    file_descriptor caller(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    token shown{};
    bool const known = caller && readable_before(caller.get(), std::min(deadline, group::clock::now() + patience)) &&
                       ::recv(caller.get(), shown.data(), shown.size(), 0) == static_cast<ssize_t>(shown.size()) &&
                       shown == token_;
    return known ? std::move(caller) : file_descriptor();
  }

  /// Waits for a caller; false when the deadline has passed.
  bool rings_before(group::clock::time_point deadline) const noexcept {
    return readable_before(socket_.get(), deadline);
  }

 private:
  static constexpr std::chrono::seconds patience{2};  // for a caller to show its token

  static token random_token() {
    std::random_device device;
    token t;
    for (std::size_t i = 0; i < t.size(); i += sizeof(std::uint32_t)) {
      std::uint32_t const word = device();
      std::memcpy(t.data() + i, &word, sizeof word);
    }
    return t;
  }

  static file_descriptor make_socket() noexcept {
    return file_descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  }

  static sockaddr_un address(token const& name, socklen_t& length) noexcept {
    static constexpr char prefix[] = "rondo-";
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path + 1, prefix, sizeof prefix - 1);
    std::memcpy(at.sun_path + sizeof prefix, name.data(), name.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + sizeof prefix + name.size());
    return at;
  }

  token token_;
  file_descriptor socket_;
};

}  // namespace rondo::inline v0::detail
