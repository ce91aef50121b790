#pragma once

#include <rondo/fingerprint.hpp>
#include <rondo/run/buffer.hpp>
#include <rondo/run/cursor.hpp>
#include <rondo/schedule.hpp>
#include <rondo/transport.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rondo::inline v0::run {

/// Two calls that should have been one: what this rank called and what `peer` called.
struct disagreement {
  rank_t peer;
  fingerprint mine, theirs;
};

/// A collective in flight: runs a schedule over a transport. poll() moves what can be moved and never blocks.
///
/// A send cursor and a receive cursor walk through the rounds of all segments; each may be in the middle of a message.
/// A send follows, byte by byte, the receive that it depends on, so that a chunk is folded and passed on while it is
/// still arriving. A receive waits only until the sends of earlier rounds are out, hence the oldest message can always
/// move and no buffer of the transport is too small.
///
/// The first bytes that two ranks exchange in a call are their fingerprints. With `echo`, pairs of ranks that only talk
/// one way exchange fingerprints both ways: needed where a rank could otherwise finish without hearing from anyone.
template <schedule S, transport X> class executor {
public:
  /// `chunks` has s.chunks() entries and must outlive the executor, like everything that it and `math` point to.
  executor(S s, X& transport, std::span<chunk const> chunks, arithmetic math, fingerprint mark, int segments, bool echo)
      : schedule_(s), transport_(transport), chunks_(chunks), math_(math), mark_(mark), rank_(transport.rank()),
        segments_(segments), out_(s, rank_, segments), in_(s, rank_, segments),
        peers_(static_cast<std::size_t>(s.ranks())) {
    for (auto const& c : chunks)
      if (c.source != c.home && c.count != 0) {
        merged_.assign(chunks.size() * static_cast<std::size_t>(segments), 0);
        break;
      }
    if (echo) expect_echoes();
  }

  /// Elements that `peer` is promised, and those that it promises, where that is not the count of the call.
  void promise(rank_t peer, std::size_t to, std::size_t from) {
    of(peer).count_out = to;
    of(peer).count_in = from;
  }

  bool done() const noexcept { return out_.done() && in_.done() && echoes_ == 0; }

  /// Moves bytes until nothing moves; true if anything did. Throws what the transport throws.
  bool poll() {
    bool moved = false;
    while (!disagreement_) {
      bool const sent = send_some();
      bool const received = receive_some();
      if (!sent && !received) break;
      moved = true;
    }
    return moved;
  }

  /// Set when a peer is in another call; then nothing moves any more.
  std::optional<disagreement> const& mismatch() const noexcept { return disagreement_; }

  /// The rank that this one waits for.
  rank_t waiting_for() const noexcept {
    if (!in_.done()) return in_.peer();
    if (!out_.done()) return out_.peer();
    for (rank_t q = 0; q < schedule_.ranks(); ++q)
      if (peers_[static_cast<std::size_t>(q)].echo) return q;
    return nobody;
  }

  /// The first fingerprint of `peer` that has arrived and was not read: a call that this rank does not know of.
  std::optional<disagreement> unexpected() {
    for (rank_t q = 0; q < schedule_.ranks() && !disagreement_; ++q)
      if (q != rank_ && !of(q).mark_in && !transport_.readable(q, sizeof(fingerprint)).empty()) read_mark(q);
    return disagreement_;
  }

private:
  static constexpr std::size_t piece_bytes = std::size_t{32} << 10; // between two looks at the other direction
  static constexpr std::size_t unset = ~std::size_t{0};

  struct peer_state {
    std::size_t count_out = unset, count_in = unset;
    std::uint8_t mark_out = 0; // bytes of the fingerprint that were sent
    bool mark_in = false;
    bool echo = false; // nothing but a fingerprint comes from there
  };

  peer_state& of(rank_t q) noexcept { return peers_[static_cast<std::size_t>(q)]; }

  void expect_echoes() {
    std::vector<bool> to(peers_.size()), from(peers_.size());
    for (int i = 0; i < schedule_.rounds(); ++i) {
      step const s = schedule_.at(rank_, i);
      if (s.to != nobody) to[static_cast<std::size_t>(s.to)] = true;
      if (s.from != nobody) from[static_cast<std::size_t>(s.from)] = true;
    }
    for (rank_t q = 0; q < schedule_.ranks(); ++q) {
      auto const i = static_cast<std::size_t>(q);
      if (to[i] && !from[i]) of(q).echo = true, ++echoes_;
      if (from[i] && !to[i]) bare_.push_back(q);
    }
  }

  /// The part of chunk `c` that belongs to segment `k`, as [first, last) in bytes.
  std::pair<std::size_t, std::size_t> part(int c, int k) const noexcept {
    std::size_t const count = chunks_[static_cast<std::size_t>(c)].count;
    if (segments_ == 1) return {0, count * math_.element};
    std::size_t const grain = std::max<std::size_t>(1, 64 / math_.element);
    std::size_t const each = (count / static_cast<std::size_t>(segments_) / grain + 1) * grain;
    auto const edge = [&](int segment) {
      return std::min(count, each * static_cast<std::size_t>(segment)) * math_.element;
    };
    return {edge(k), k + 1 == segments_ ? count * math_.element : edge(k + 1)};
  }

  std::size_t flag(int c, int k) const noexcept {
    return static_cast<std::size_t>(k) * chunks_.size() + static_cast<std::size_t>(c);
  }

  bool write_mark(rank_t q, bool more) {
    auto& p = of(q);
    if (p.mark_out == sizeof(fingerprint)) return true;
    fingerprint mark = mark_;
    if (p.count_out != unset) mark.count = p.count_out;
    auto const bytes = std::as_bytes(std::span(&mark, 1)).subspan(p.mark_out);
    p.mark_out = static_cast<std::uint8_t>(p.mark_out + transport_.write(q, bytes, more));
    return p.mark_out == sizeof(fingerprint);
  }

  bool read_mark(rank_t q) {
    auto& p = of(q);
    if (p.mark_in) return true;
    auto const bytes = transport_.readable(q, sizeof(fingerprint));
    if (bytes.empty()) return false;
    fingerprint theirs, mine = mark_;
    std::memcpy(&theirs, bytes.data(), sizeof theirs);
    if (p.count_in != unset) mine.count = p.count_in;
    if (theirs != mine) {
      disagreement_ = disagreement{q, mine, theirs};
      return false;
    }
    transport_.consume(q, sizeof(fingerprint));
    p.mark_in = true;
    if (std::exchange(p.echo, false)) --echoes_;
    return true;
  }

  /// How far the current chunk may be sent: all of it, or what has been merged of a receive of the same slice, or
  /// nothing.
  std::size_t sendable(std::size_t all) const noexcept {
    int const k = out_.segment();
    long tick = out_.tick() - 1;
    for (int i = out_.round() - 1; i >= 0 && !in_.passed(tick, k); --i, --tick) {
      step const earlier = schedule_.at(rank_, i);
      if (earlier.from == nobody || !overlap(earlier.in, out_.what())) continue;
      bool const following = in_.tick() == tick && in_.segment() == k && earlier.in == out_.what();
      if (!following || in_.index < out_.index) return 0;
      return in_.index > out_.index ? all : in_.offset;
    }
    return all;
  }

  bool overlap(slice a, slice b) const noexcept {
    if (a.count == 0 || b.count == 0) return false;
    int const n = schedule_.chunks();
    int const ab = b.first >= a.first ? b.first - a.first : b.first - a.first + n;
    int const ba = ab == 0 ? 0 : n - ab;
    return ab < a.count || ba < b.count;
  }

  bool send_some() {
    while (!bare_.empty()) {
      if (!write_mark(bare_.back(), false)) break;
      bare_.pop_back();
    }
    bool moved = false;
    while (!out_.done()) {
      rank_t const q = out_.peer();
      slice const what = out_.what();
      if (of(q).mark_out < sizeof(fingerprint) && !write_mark(q, what.count != 0)) return moved;
      for (; out_.index < what.count; ++out_.index, out_.offset = 0) {
        int const c = out_.chunk();
        auto const [first, last] = part(c, out_.segment());
        std::size_t const all = last - first;
        while (out_.offset < all) {
          std::size_t const limit = sendable(all);
          if (limit <= out_.offset) return moved;
          if (out_.offset == 0) outgoing_ = value_of(c, out_.segment()) + first;
          std::size_t const n = std::min(limit - out_.offset, piece_bytes);
          bool const more = out_.offset + n == all && out_.index + 1 < what.count;
          std::size_t const accepted = transport_.write(q, {outgoing_ + out_.offset, n}, more);
          out_.offset += accepted;
          if (accepted != 0) moved = true;
          if (accepted < n || (n == piece_bytes && !in_.done())) return moved;
        }
      }
      out_.next();
      moved = true;
    }
    return moved;
  }

  bool receive_some() {
    bool moved = false;
    while (!in_.done()) {
      if (!out_.reached(in_.tick(), in_.segment())) return moved;
      bool const same_round = !out_.done() && out_.tick() == in_.tick() && out_.segment() == in_.segment();
      rank_t const q = in_.peer();
      if (!of(q).mark_in && !read_mark(q)) return moved;
      slice const what = in_.what();
      bool const follow = same_round && out_.what() == what;
      for (; in_.index < what.count; ++in_.index, in_.offset = 0) {
        auto const [first, last] = part(in_.chunk(), in_.segment());
        std::size_t const all = last - first;
        while (in_.offset < all) {
          std::size_t limit = all;
          if (follow && out_.index <= in_.index) limit = out_.index < in_.index ? 0 : out_.offset;
          std::size_t const n = merge(q, first, std::min(limit - std::min(limit, in_.offset), piece_bytes));
          if (n == 0) return moved;
          in_.offset += n;
          moved = true;
          if (n == piece_bytes && !out_.done()) return moved;
        }
      }
      in_.next();
      moved = true;
    }
    while (echoes_ != 0) {
      rank_t const q = waiting_for();
      if (!read_mark(q)) return moved;
      moved = true;
    }
    return moved;
  }

  /// Merges up to `limit` arrived bytes into the current chunk and returns their number.
  std::size_t merge(rank_t q, std::size_t first, std::size_t limit) {
    if (limit == 0) return 0;
    int const c = in_.chunk();
    std::byte* const home = chunks_[static_cast<std::size_t>(c)].home + first;
    if (in_.offset == 0) {
      incoming_ = value_of(c, in_.segment()) + first;
      if (!merged_.empty()) merged_[flag(c, in_.segment())] = 1;
    }
    step const& s = in_.now();
    if (s.how == rondo::merge::overwrite) return transport_.read(q, {home + in_.offset, limit});
    auto const bytes = transport_.readable(q, math_.element);
    std::size_t const count = std::min(bytes.size(), limit) / math_.element;
    if (count == 0) return 0;
    std::byte* const out = home + in_.offset;
    std::byte const* const mine = incoming_ + in_.offset;
    if (s.how == rondo::merge::fold)
      math_.fold(math_.op, out, mine, bytes.data(), count);
    else
      math_.fold(math_.op, out, bytes.data(), mine, count);
    transport_.consume(q, count * math_.element);
    if (s.completes && math_.finish) math_.finish(math_.op, out, count);
    return count * math_.element;
  }

  /// Where the value of chunk `c` in segment `k` is now.
  std::byte const* value_of(int c, int k) const noexcept {
    chunk const& x = chunks_[static_cast<std::size_t>(c)];
    return merged_.empty() || merged_[flag(c, k)] ? x.home : x.source;
  }

  S schedule_;
  X& transport_;
  std::span<chunk const> chunks_;
  arithmetic math_;
  fingerprint mark_;
  rank_t rank_;
  int segments_;
  cursor<S, direction::send> out_;
  cursor<S, direction::receive> in_;
  std::vector<peer_state> peers_;
  std::vector<std::uint8_t> merged_; // per segment and chunk: the value has moved from source to home
  std::vector<rank_t> bare_;         // who gets nothing from this rank but its fingerprint
  int echoes_ = 0;
  std::byte const* outgoing_ = nullptr;
  std::byte const* incoming_ = nullptr;
  std::optional<disagreement> disagreement_;
};

} // namespace rondo::inline v0::run
