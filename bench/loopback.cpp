#include "connect.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace rondo::bench {

std::array<int, 2> loopback_pair() {
  auto const require = [](bool well) {
    if (!well) throw world_error("the loopback interface does not work: 'ip link set lo up' may help.");
  };
  int const listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(listener >= 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  require(::bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0 && ::listen(listener, 1) == 0 &&
          ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  int const dialer = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  require(dialer >= 0 && ::connect(dialer, reinterpret_cast<sockaddr*>(&address), length) == 0);
  int const accepted = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  require(accepted >= 0);
  ::close(listener);
  for (int const fd : {dialer, accepted}) {
    int const on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  return {dialer, accepted};
}

}  // namespace rondo::bench
