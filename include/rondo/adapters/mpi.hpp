#pragma once

#include <rondo/error.hpp>
#include <rondo/group.hpp>
#include <rondo/transports/bootstrap/introduced.hpp>

#include <memory>
#include <mpi.h>
#include <string>
#include <utility>

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
inline std::shared_ptr<group> join_mpi(MPI_Comm comm, join_options const& options = {}) {
  using namespace detail;
  return join_introduced(
      place_in(comm), options, [comm](std::string text) { return broadcast_by_mpi(comm, std::move(text)); },
      [comm](bool here) {
        int const mine = here;
        int everywhere = 0;
        check_mpi(MPI_Allreduce(&mine, &everywhere, 1, MPI_INT, MPI_LAND, comm), "MPI_Allreduce");
        return everywhere != 0;
      });
}

}  // namespace rondo::inline v0
