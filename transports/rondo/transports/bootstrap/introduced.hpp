#pragma once

#include <rondo/error.hpp>
#include <rondo/group.hpp>
#include <rondo/transports/bootstrap.hpp>
#include <rondo/transports/bootstrap/any_door.hpp>
#include <rondo/transports/bootstrap/handshake.hpp>
#include <rondo/transports/tcp/wiring.hpp>

#include <exception>
#include <memory>
#include <string>
#include <utility>

/// For ranks that can tell each other things already: by MPI, or by a store of keys and values.
namespace rondo::inline v0::detail {

inline std::string fresh_token() {
  std::string text;
  for (char const byte : fresh_nonce())
    for (int const shift : {4, 0}) text += "0123456789abcdef"[static_cast<unsigned char>(byte) >> shift & 15];
  return text;
}

/// Joins the ranks of `who`, of which only rank, size and launcher are looked at.
///
/// tell(text) gives every rank the text of rank 0, all(flag) says whether the flag is true on all ranks; every rank
/// makes the same calls of both. They carry a fresh job token, and where rank 0 is: ranks of one host, in one network
/// name space, meet at a Unix socket; otherwise rank 0 listens at a free port, and the others try the addresses of
/// those of its interfaces that RONDO_SOCKET_IFNAME chooses. The deadline begins after the last of these calls.
template <class Tell, class All>
std::shared_ptr<group> join_introduced(environment who, join_options const& options, Tell const& tell, All const& all) {
  auto const machine = tcp_wiring::this_machine();
  auto const told = tell(fresh_token() + ' ' + machine);
  who.job = told.substr(0, told.find(' '));
  if (all(machine != "-" && told == who.job + ' ' + machine)) return join(who, options);

  any_door door;
  std::string where;
  std::exception_ptr shut;
  try {
    if (who.rank == 0) door = any_door::open("rank 0", 0), where = door.place.encode();
  } catch (error const&) { shut = std::current_exception(); }
  where = tell(where);
  if (shut) std::rethrow_exception(shut);
  if (where.empty()) throw connect_error("rank 0 cannot listen for the others: see its output", 0);
  return join_at(tcp_wiring::decode(where, 0), std::move(who), door, steady::now() + options.deadline);
}

}  // namespace rondo::inline v0::detail
