#pragma once

#include <rondo/detail/sha256.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>
#include <rondo/transports/bootstrap/wire.hpp>
#include <rondo/version.hpp>

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <sys/random.h>
#include <unistd.h>

/// How a rank and the coordinator convince each other: both prove by HMAC over two fresh nonces that they know the job
/// token. The joining side goes first, so that a stranger learns nothing from the coordinator, and each proof names its
/// side, so that none can be reflected.
///
///     rank         hello      magic, protocol, nonce a
///     coordinator  challenge  magic, protocol, nonce b
///     rank         proof      settings, HMAC(token, "rank" a b settings)
///     coordinator  welcome    identity, HMAC(token, "coordinator" a b identity)       or refusal: code, sentence
namespace rondo::inline v0::detail {

inline constexpr std::uint64_t handshake_magic = 0x6f646e6f72ff0d0a;  // not ASCII, not TLS
inline constexpr std::uint32_t protocol_version = 1;
inline constexpr std::size_t nonce_size = 32;

/// Why a rank is not let in. `busy` may pass, everything else is final.
enum class refusal : std::uint8_t { none, busy, token, protocol, final };

/// Who a process is, for messages.
struct identity {
  std::uint32_t pid = 0;
  std::string host;

  static identity own() {
    char name[65]{};
    (void)::gethostname(name, sizeof name - 1);
    return {static_cast<std::uint32_t>(::getpid()), name};
  }
  std::string text() const { return text_of({"pid ", pid, " on ", host}); }

  void pack(packer& out) const { out.number(pid).text(host); }
  static identity unpack(unpacker& in) {
    auto const pid = in.number<std::uint32_t>();
    std::string host(in.text().substr(0, 64));
    for (auto& c : host)
      if (c < ' ' || c > '~') c = '?';
    return {pid, std::move(host)};
  }
};

/// What all ranks of a job must agree on, and who asks.
struct settings {
  std::uint32_t version = RONDO_VERSION;
  std::int32_t size = 0;
  std::int32_t rank = 0;
  identity who;

  void pack(packer& out) const {
    out.number(version).number(size).number(rank);
    who.pack(out);
  }
  static settings unpack(unpacker& in) {
    settings s;
    s.version = in.number<std::uint32_t>();
    s.size = in.number<std::int32_t>();
    s.rank = in.number<std::int32_t>();
    s.who = identity::unpack(in);
    return s;
  }
};

inline std::string fresh_nonce() {
  std::string nonce(nonce_size, '\0');
  for (std::size_t have = 0; have < nonce_size;) {
    auto const n = ::getrandom(nonce.data() + have, nonce_size - have, 0);
    if (n > 0)
      have += static_cast<std::size_t>(n);
    else if (errno != EINTR)
      throw connect_error("the system has no random numbers (getrandom failed), so ranks cannot prove the job token");
  }
  return nonce;
}

inline std::string prove(std::string_view token, std::string_view side, std::string_view rank_nonce,
                         std::string_view coordinator_nonce, std::string_view statement) {
  return std::string(
      view(hmac_sha256(token, packer{}.text(side).raw(rank_nonce).raw(coordinator_nonce).text(statement))));
}

inline packer greeting(std::string_view nonce) {
  return packer{}.number(handshake_magic).number(protocol_version).raw(nonce);
}

/// The nonce of a hello or a challenge, and the protocol that the peer speaks. Throws malformed if it is no rondo.
inline std::string read_greeting(std::string_view payload, std::uint32_t& protocol) {
  unpacker in(payload);
  if (in.number<std::uint64_t>() != handshake_magic) throw malformed{};
  protocol = in.number<std::uint32_t>();
  return std::string(in.raw(nonce_size));
}

}  // namespace rondo::inline v0::detail
