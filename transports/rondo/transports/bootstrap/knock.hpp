#pragma once

#include <rondo/detail/text.hpp>
#include <rondo/transports/bootstrap/endpoint.hpp>
#include <rondo/transports/bootstrap/frame_stream.hpp>
#include <rondo/transports/bootstrap/handshake.hpp>
#include <rondo/transports/environment.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fcntl.h>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

/// How the ranks of a job find rank 0: where it listens, and how the others get to it.
namespace rondo::inline v0::detail {

/// How long the remains of an earlier job at the same place are waited for.
inline constexpr auto earlier_job_patience = std::chrono::seconds(5);

/// Without a secret the name of the job at least keeps jobs apart.
inline std::string const& secret_of(environment const& env) { return env.token.empty() ? env.job : env.token; }

inline bool by_name(environment const& env) { return env.address.empty() || env.port == 0; }

/// One socket for each user and job of this host.
inline endpoint rendezvous(environment const& env) {
  auto const hash = sha256{}.update(env.job).finish();
  std::string name = text_of({"rondo/", ::geteuid(), "/"});
  for (std::size_t i = 0; i < 16; ++i) {
    name += "0123456789abcdef"[hash[i] >> 4];
    name += "0123456789abcdef"[hash[i] & 15];
  }
  return abstract_endpoint(name);
}

inline std::string place_of(environment const& env) {
  if (by_name(env)) return rendezvous(env).text;
  auto const first = text_of({env.address, " port ", env.port});
  return env.ports == 1 ? first : text_of({first, " to ", env.port + env.ports - 1});
}

/// All places where rank 0 may be found.
inline std::vector<endpoint> places_of(environment const& env) {
  if (by_name(env)) return {rendezvous(env)};
  std::vector<endpoint> all;
  for (int i = 0; i < env.ports; ++i)
    for (auto& place : resolve(env.address, static_cast<std::uint16_t>(env.port + i))) all.push_back(std::move(place));
  return all;
}

/// Where rank 0 listens: an IP address of its own is taken exactly, so that a job on the loopback is not seen from
/// outside. A host name may mean something else on the other hosts (Debian maps the own name to 127.0.1.1), and an
/// address may be translated on the way: then every address of this host.
inline std::vector<endpoint> own_places_of(environment const& env) {
  if (by_name(env)) return {rendezvous(env)};
  in6_addr ignored;
  bool const local_name = env.address == "localhost";
  bool const literal = ::inet_pton(AF_INET, env.address.c_str(), &ignored) == 1 ||
                       ::inet_pton(AF_INET6, env.address.c_str(), &ignored) == 1;
  bool const loopback = local_name || env.address.starts_with("127.") || env.address == "::1";
  std::vector<endpoint> all;
  for (int i = 0; i < env.ports; ++i) {
    auto const port = static_cast<std::uint16_t>(env.port + i);
    if (literal || local_name)
      for (auto& place : resolve(env.address, port)) all.push_back(std::move(place));
    if (!loopback)
      for (auto& place : any_address(port)) all.push_back(std::move(place));
  }
  return all;
}

/// The listening socket of rank 0.
inline file_descriptor open_door(environment const& env, steady::time_point deadline) {
  if (env.listen_fd >= 0) {
    int listening = 0;
    socklen_t size = sizeof listening;
    file_descriptor fd(::fcntl(env.listen_fd, F_DUPFD_CLOEXEC, 3));
    if (!fd || ::getsockopt(fd.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || !listening)
      throw invalid_argument(
          text_of({"descriptor ", env.listen_fd, " is not a listening socket: correct RONDO_LISTEN_FD, or unset it"}));
    (void)::fcntl(env.listen_fd, F_SETFD, FD_CLOEXEC);
    (void)::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
    return fd;
  }
  auto const give_up = std::min(deadline, steady::now() + earlier_job_patience);
  while (true) {
    int wrong = 0;
    for (auto const& place : own_places_of(env)) {
      if (auto fd = listen_at(place)) return fd;
      if (wrong != EADDRINUSE) wrong = errno;
    }
    if (wrong != EADDRINUSE || steady::now() >= give_up)
      throw connect_error(text_of({"rank 0 cannot listen at ", place_of(env), " (", error_text(wrong),
                                   "): choose a free port with MASTER_PORT, or end the job that holds it"}),
                          0);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

/// The next frame, or nothing when the connection ends or the deadline passes.
inline std::optional<frame> await(frame_stream& stream, steady::time_point deadline) {
  while (stream.flush()) {
    if (auto f = stream.pop()) return f;
    pollfd polled{stream.fd(), stream.events(), 0};
    auto const ready = ::poll(&polled, 1, poll_timeout(deadline));
    if (ready == 0) return std::nullopt;
    if (ready > 0 && (polled.revents & ~POLLOUT) != 0 && !stream.fill()) return stream.pop();
  }
  return std::nullopt;
}

/// How an attempt to join ended.
struct introduction {
  refusal code = refusal::busy;
  std::string what;  ///< if it failed
  identity hub;      ///< if it did not: code none
};

/// The handshake of a joining rank; see handshake.hpp.
inline introduction introduce(frame_stream& stream, environment const& env, steady::time_point deadline) {
  try {
    auto const ours = fresh_nonce();
    stream.push(message::hello, 0, greeting(ours));
    auto answer = await(stream, deadline);
    if (answer && answer->kind == message::challenge) {
      std::uint32_t protocol = 0;
      auto const theirs = read_greeting(answer->payload, protocol);
      packer mine;
      settings{RONDO_VERSION, env.size, env.rank, identity::own()}.pack(mine);
      auto const& secret = secret_of(env);
      stream.push(message::proof, 0, packer{}.text(mine).raw(prove(secret, "rank", ours, theirs, mine)));
      // Once rank 0 has the proof it may count this rank as joined: to hang up now would look like its death.
      answer = await(stream, std::max(deadline, steady::now() + std::chrono::seconds(2)));
      if (answer && answer->kind == message::welcome) {
        unpacker in(answer->payload);
        auto const self = in.text();
        if (!same_secret(in.raw(sizeof(digest)), prove(secret, "coordinator", ours, theirs, self)))
          return {refusal::token, "who listens there does not know the job token", {}};
        unpacker who(self);
        return {refusal::none, {}, identity::unpack(who)};
      }
    }
    if (!answer) return {refusal::busy, "the connection was accepted but no rondo answered", {}};
    if (answer->kind != message::refusal) throw malformed{};
    unpacker in(answer->payload);
    auto const code = in.number<std::uint8_t>();
    std::string what(in.text());
    for (auto& c : what)
      if (c < ' ' || c > '~') c = '?';
    if (code == 0 || code > static_cast<std::uint8_t>(refusal::final)) throw malformed{};
    return {static_cast<refusal>(code), std::move(what), {}};
  } catch (malformed const&) { return {refusal::busy, "something that is not rondo answers there", {}}; }
}

/// Connects to rank 0 and joins, again and again until the deadline: rank 0 may come later, an earlier job may still be
/// about to end, a host name may still be unknown. A refusal that cannot change is thrown at once.
inline std::pair<frame_stream, identity> knock(environment const& env, steady::time_point deadline) {
  constexpr std::size_t longest_refusal = 8192;
  auto const patient_until = std::min(deadline, steady::now() + earlier_job_patience / 2);
  auto const where = place_of(env);
  std::string last;
  std::chrono::milliseconds pause(4 + env.rank % 4);  // ranks that start together knock apart
  while (true) {
    std::vector<endpoint> places;
    try {
      places = places_of(env);
    } catch (connect_error const& e) { last = e.what(); }
    for (auto const& place : places) {
      auto socket = connect_to(place, std::min(deadline, steady::now() + std::chrono::seconds(3)));
      if (!socket) {
        last = error_text(errno);
        continue;
      }
      if (!same_user(socket.get())) {
        last = "the socket belongs to another user";
        continue;
      }
      tune(socket.get());
      frame_stream stream(std::move(socket), longest_refusal);
      auto result = introduce(stream, env, std::min(deadline, steady::now() + std::chrono::seconds(5)));
      if (result.code == refusal::none) {
        stream.permit(frame_stream::member_limit + 64);
        return {std::move(stream), std::move(result.hub)};
      }
      if (last.empty() || steady::now() < deadline) last = std::move(result.what);  // not what the deadline cut short
      bool const may_pass = result.code == refusal::busy ||
                            (result.code == refusal::token && (env.ports > 1 || steady::now() < patient_until));
      if (!may_pass)
        throw connect_error(
            text_of(
                {"rank ", env.rank, " was refused at ", where, ": ", last,
                 result.code == refusal::token ? ": does another job use this port, or does RONDO_TOKEN differ?" : ""}),
            env.rank);
    }
    if (steady::now() >= deadline)
      throw connect_error(text_of({"rank ", env.rank, " did not reach rank 0 at ", where, " in time (", last,
                                   "): was rank 0 started, with the same address and port?"}),
                          0);
    std::this_thread::sleep_for(std::min<steady::duration>(pause, deadline - steady::now()));
    pause = std::min(pause * 3 / 2, std::chrono::milliseconds(250 + env.rank % 64));
  }
}

}  // namespace rondo::inline v0::detail
