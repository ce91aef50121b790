#pragma once

#include <rondo/error.hpp>
#include <rondo/group.hpp>
#include <rondo/transports/bootstrap.hpp>
#include <rondo/transports/bootstrap/endpoint.hpp>
#include <rondo/transports/interfaces.hpp>
#include <rondo/transports/tcp/wiring.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <memory>
#include <mpi.h>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <thread>

namespace rondo::inline v0 {

namespace detail {

/// Throws connect_error with the sentence of MPI, where its error handler lets a call return at all.
inline void check_mpi(int code, char const* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING]{};
  int length = 0;
  (void)MPI_Error_string(code, text, &length);
  throw connect_error(std::string("the ranks cannot be joined by MPI: ") + call + " failed (" + text + ")");
}

/// The text of rank 0 on every rank.
inline std::string broadcast_by_mpi(MPI_Comm comm, std::string text) {
  int length = static_cast<int>(text.size());
  check_mpi(MPI_Bcast(&length, 1, MPI_INT, 0, comm), "MPI_Bcast");
  text.resize(static_cast<std::size_t>(length));
  check_mpi(MPI_Bcast(text.data(), length, MPI_CHAR, 0, comm), "MPI_Bcast");
  return text;
}

/// This rank of `comm`, which must be one that ranks can be counted in. Throws invalid_argument.
inline environment place_in(MPI_Comm comm) {
  int started = 0, ended = 0, between = 0;
  (void)MPI_Initialized(&started);
  (void)MPI_Finalized(&ended);
  if (!started || ended)
    throw invalid_argument("join_mpi needs MPI to be running: call it between MPI_Init and MPI_Finalize");
  if (comm == MPI_COMM_NULL)
    throw invalid_argument("join_mpi was given MPI_COMM_NULL: this rank is not part of that communicator");
  check_mpi(MPI_Comm_test_inter(comm, &between), "MPI_Comm_test_inter");
  if (between) throw invalid_argument("join_mpi was given an intercommunicator: merge it by MPI_Intercomm_merge");
  environment who;
  who.launcher = "MPI";
  check_mpi(MPI_Comm_rank(comm, &who.rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm, &who.size), "MPI_Comm_size");
  return who;
}

/// Opens the door of rank 0 at a free port of every address, and writes down where it is.
inline file_descriptor open_any_door(tcp_wiring& mine) {
  auto const addresses = usable_addresses(interface_addresses(), interface_filter::from_environment());
  file_descriptor door;
  for (auto const& place : any_address(0))
    if (!door) door = listen_at(place);
  sockaddr_storage at{};
  socklen_t length = sizeof at;
  if (!door || ::getsockname(door.get(), reinterpret_cast<sockaddr*>(&at), &length) != 0)
    throw connect_error("rank 0 cannot listen for the others (" + error_text(errno) + "): allow TCP sockets there", 0);
  auto const port = ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6 const&>(at).sin6_port
                                                   : reinterpret_cast<sockaddr_in const&>(at).sin_port);
  for (auto const& a : addresses) mine.endpoints.push_back({a.address, a.prefix, port});
  return door;
}

/// The first address of rank 0, best first, where somebody answers; that it is rank 0 the handshake proves afterwards.
inline ip_address reachable_address(tcp_wiring mine, tcp_wiring const& hub, rank_t rank, steady::time_point deadline) {
  for (auto const& a : interface_addresses()) mine.endpoints.push_back({a.address, a.prefix, 0});
  auto const route = mine.route_to(hub);
  for (;;) {
    std::string tried;
    for (auto const& there : route) {
      endpoint to;
      to.length = there.address.fill(to.address, there.port);
      if (connect_to(to, std::min(deadline, steady::now() + std::chrono::seconds(3)))) return there.address;
      tried += (tried.empty() ? "" : ", ") + there.to_string() + " (" + error_text(errno) + ")";
    }
    if (steady::now() >= deadline)
      throw connect_error("rank " + std::to_string(rank) + " cannot reach rank 0: tried " + tried +
                              "; set RONDO_SOCKET_IFNAME on rank 0 to an interface that all hosts can reach",
                          0);
    std::this_thread::sleep_for(std::min<steady::duration>(std::chrono::milliseconds(50), deadline - steady::now()));
  }
}

inline std::string fresh_token() {
  std::string text;
  for (char const byte : fresh_nonce())
    for (int const shift : {4, 0}) text += "0123456789abcdef"[static_cast<unsigned char>(byte) >> shift & 15];
  return text;
}

}  // namespace detail

/// Joins the ranks of an MPI communicator, with the numbers that they have there. Every rank of it must call.
///
/// MPI is used within this call only, to tell all ranks a fresh job token and where rank 0 is; the rest goes on as
/// in join(). So MPI need not be thread-safe, and may be finalised while the group lives. Ranks of one host, in one
/// network name space, meet at a Unix socket; otherwise rank 0 listens at a free port, and the others try the addresses
/// of those of its interfaces that RONDO_SOCKET_IFNAME chooses.
///
/// The deadline begins when MPI has done its part: MPI itself waits for ranks that do not call, as it always does.
/// Throws what join() throws, and invalid_argument where there is no communicator to join.
inline std::shared_ptr<group> join_mpi(MPI_Comm comm, join_options options = {}) {
  using namespace detail;
  auto who = place_in(comm);
  auto const machine = tcp_wiring::this_machine();
  auto const told = broadcast_by_mpi(comm, fresh_token() + ' ' + machine);
  who.job = told.substr(0, told.find(' '));
  int const near = machine != "-" && told == who.job + ' ' + machine;
  int all_near = 0;
  check_mpi(MPI_Allreduce(&near, &all_near, 1, MPI_INT, MPI_LAND, comm), "MPI_Allreduce");
  if (all_near) return join(who, options);

  tcp_wiring mine{.streams = 1, .stripe = 1, .machine = machine, .secret = {}, .endpoints = {}};
  std::string where;
  file_descriptor door;
  std::exception_ptr shut;
  try {
    if (who.rank == 0) door = open_any_door(mine), where = mine.encode();
  } catch (error const&) { shut = std::current_exception(); }
  where = broadcast_by_mpi(comm, where);
  if (shut) std::rethrow_exception(shut);
  if (where.empty()) throw connect_error("rank 0 cannot listen for the others: see its output", 0);

  auto const hub = tcp_wiring::decode(where, 0);
  auto const deadline = steady::now() + options.deadline;
  who.port = hub.endpoints.front().port;
  who.address =
      (who.rank == 0 ? hub.endpoints.front().address : reachable_address(mine, hub, who.rank, deadline)).to_string();
  who.listen_fd = door.get();
  options.deadline = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady::now());
  return join(who, options);
}

}  // namespace rondo::inline v0
