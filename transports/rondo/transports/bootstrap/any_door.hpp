#pragma once

#include <rondo/error.hpp>
#include <rondo/transports/bootstrap.hpp>
#include <rondo/transports/bootstrap/endpoint.hpp>
#include <rondo/transports/interfaces.hpp>
#include <rondo/transports/tcp/wiring.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <netinet/in.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <thread>
#include <utility>

/// For jobs whose ranks are told by somebody else where to meet: a door at whatever port is free, and the way to it.
namespace rondo::inline v0::detail {

/// A socket that listens at a free port of every address of this process, and where it is.
struct any_door {
  file_descriptor socket;
  tcp_wiring place{.streams = 1, .stripe = 1, .machine = tcp_wiring::this_machine(), .secret = {}, .endpoints = {}};

  /// Offers the addresses of the interfaces that RONDO_SOCKET_IFNAME chooses. Throws connect_error, in which `who` is
  /// the name of this process and `rank` its rank.
  static any_door open(std::string const& who, rank_t rank = nobody) {
    any_door door;
    auto const addresses = usable_addresses(interface_addresses(), interface_filter::from_environment());
    for (auto const& at : any_address(0))
      if (!door.socket) door.socket = listen_at(at);
    sockaddr_storage at{};
    socklen_t length = sizeof at;
    if (!door.socket || ::getsockname(door.socket.get(), reinterpret_cast<sockaddr*>(&at), &length) != 0)
      throw connect_error(who + " cannot listen for the others (" + error_text(errno) + "): allow TCP sockets there",
                          rank);
    auto const port = ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6 const&>(at).sin6_port
                                                     : reinterpret_cast<sockaddr_in const&>(at).sin_port);
    for (auto const& a : addresses) door.place.endpoints.push_back({a.address, a.prefix, port});
    return door;
  }
};

/// The first address of `there`, best first, where somebody answers; who that is the handshake proves afterwards.
/// Throws connect_error after the deadline: `self` did not reach `host`, whose rank is `at_fault`.
inline ip_address reachable_address(tcp_wiring const& there, std::string const& self, std::string const& host,
                                    rank_t at_fault, steady::time_point deadline) {
  tcp_wiring mine{.streams = 1, .stripe = 1, .machine = tcp_wiring::this_machine(), .secret = {}, .endpoints = {}};
  for (auto const& a : interface_addresses()) mine.endpoints.push_back({a.address, a.prefix, 0});
  auto const route = mine.route_to(there);
  for (;;) {
    std::string tried;
    for (auto const& at : route) {
      endpoint to;
      to.length = at.address.fill(to.address, at.port);
      if (connect_to(to, std::min(deadline, steady::now() + std::chrono::seconds(3)))) return at.address;
      tried += (tried.empty() ? "" : ", ") + at.to_string() + " (" + error_text(errno) + ")";
    }
    if (steady::now() >= deadline)
      throw connect_error(self + " cannot reach " + host + ": tried " + tried +
                              "; set RONDO_SOCKET_IFNAME there to an interface that all hosts can reach",
                          at_fault);
    std::this_thread::sleep_for(std::min<steady::duration>(std::chrono::milliseconds(50), deadline - steady::now()));
  }
}

/// join() for ranks of which rank 0 has opened `door`, whose place the others were told. `who` has the rank, the size
/// and the token.
inline std::shared_ptr<group> join_at(tcp_wiring const& hub, environment who, any_door const& door,
                                      steady::time_point deadline) {
  who.port = hub.endpoints.front().port;
  who.address = (who.rank == 0 ? hub.endpoints.front().address
                               : reachable_address(hub, "rank " + std::to_string(who.rank), "rank 0", 0, deadline))
                    .to_string();
  who.listen_fd = door.socket.get();
  return join(who, {.deadline = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady::now())});
}

}  // namespace rondo::inline v0::detail
