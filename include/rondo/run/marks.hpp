#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/error.hpp>
#include <rondo/fingerprint.hpp>
#include <rondo/run/boards.hpp>
#include <rondo/transport.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace rondo::inline v0::run {

/// Two calls that should have been one: what this rank called and what `peer` called.
struct disagreement {
  rank_t peer;
  fingerprint mine, theirs;
};

/// Memory that a communicator lends to one call after the other, so that a small call allocates nothing.
struct workspace {
  /// What a rank knows about a peer. The numbers are those of calls, so that nothing is reset between two calls.
  struct peer_state {
    std::uint64_t marked_out = 0, marked_in = 0;  ///< the last call whose fingerprint was sent there, came from there
    std::uint8_t mark_bytes = 0;                  ///< how much of a fingerprint under way was sent
  };

  explicit workspace(int ranks) : peers(static_cast<std::size_t>(ranks)), sources(peers.size()), outs(peers.size()) {}

  std::uint64_t call = 0;  ///< number of the call that uses this memory
  std::vector<peer_state> peers;
  std::vector<std::byte const*> sources;  ///< by rank: where a fold over all of them reads,
  std::vector<std::byte*> outs;           ///< and where it writes
  std::vector<std::byte> block;           ///< what it computes in between
  boards shared;
};

/// Elements that a rank and a peer promise each other, where that is not one number for the whole call.
struct promise {
  std::size_t out = 0, in = 0;
};

/// The fingerprints of one call: sent in front of the first bytes to each peer, expected in front of its first bytes.
template <transport X>
class marks {
 public:
  /// `promises` is empty or has one entry per rank.
  marks(X& transport, fingerprint const& mark, workspace& memory, std::span<promise const> promises = {}) noexcept
      : transport_(transport), mark_(mark), memory_(memory), promises_(promises), call_(++memory.call) {}

  bool sent(rank_t q) const noexcept { return at(q).marked_out == call_; }
  bool received(rank_t q) const noexcept { return at(q).marked_in == call_; }

  /// The fingerprint for `q`; valid until the next call of a member. note_sent() once all of it is out.
  fingerprint const& outgoing(rank_t q) noexcept { return counting(q, &promise::out); }
  void note_sent(rank_t q) noexcept { at(q).marked_out = call_; }

  /// Sends what is left of the fingerprint for `q`; true once it is out.
  bool send(rank_t q, bool more) {
    if (sent(q)) return true;
    auto& p = at(q);
    fingerprint const& mark = outgoing(q);
    auto const rest = std::as_bytes(std::span(&mark, 1)).subspan(p.mark_bytes);
    p.mark_bytes = static_cast<std::uint8_t>(p.mark_bytes + transport_.write(q, rest, more));
    if (p.mark_bytes != sizeof mark) return false;
    p.mark_bytes = 0;
    note_sent(q);
    return true;
  }

  /// Takes the fingerprint of `q` from its stream; true once it is here and agrees.
  bool receive(rank_t q) {
    if (received(q)) return true;
    auto const bytes = transport_.readable(q, sizeof(fingerprint));
    if (bytes.empty() || !accept(q, bytes.data())) return false;
    transport_.consume(q, sizeof(fingerprint));
    return true;
  }

  /// Compares the fingerprint of `q` that lies at `bytes`; the caller consumes it.
  bool accept(rank_t q, std::byte const* bytes) {
    fingerprint const& mine = counting(q, &promise::in);
    if (std::memcmp(&mine, bytes, sizeof mine) == 0) {
      at(q).marked_in = call_;
      return true;
    }
    fingerprint theirs;
    std::memcpy(&theirs, bytes, sizeof theirs);
    disagreement_ = disagreement{q, mine, theirs};
    return false;
  }

  /// Set when a peer is in another call; then nothing may move any more.
  std::optional<disagreement> const& mismatch() const noexcept { return disagreement_; }

  /// Looks for a fingerprint of this call, but another one, from ranks that this rank expects nothing from. Those of
  /// later calls are left alone: a rank may finish a call before its peers.
  void look_around() {
    if (mark_.sequence == 0) return;
    for (rank_t q = 0; q < transport_.size() && !disagreement_; ++q) {
      if (q == transport_.rank() || received(q)) continue;
      auto const bytes = glance(q);
      if (bytes.empty()) continue;
      fingerprint theirs;
      std::memcpy(&theirs, bytes.data(), sizeof theirs);
      if (theirs.sequence == mark_.sequence && theirs != counting(q, &promise::in)) accept(q, bytes.data());
    }
  }

 private:
  /// A fingerprint that has come from `q`, if any. That `q` has left says nothing here: it may have finished this call.
  std::span<std::byte const> glance(rank_t q) {
    try {
      return transport_.readable(q, sizeof(fingerprint));
    } catch (peer_lost const&) { return {}; }
  }

  workspace::peer_state& at(rank_t q) const noexcept { return detail::by_rank(memory_.peers, q); }

  fingerprint const& counting(rank_t q, std::size_t promise::*count) noexcept {
    if (!promises_.empty()) mark_.count = detail::by_rank(promises_, q).*count;
    return mark_;
  }

  X& transport_;
  fingerprint mark_;
  workspace& memory_;
  std::span<promise const> promises_;
  std::uint64_t call_;
  std::optional<disagreement> disagreement_;
};

}  // namespace rondo::inline v0::run
