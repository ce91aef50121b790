#pragma once

#include <rondo/run/buffer.hpp>
#include <rondo/run/cursor.hpp>
#include <rondo/run/marks.hpp>
#include <rondo/schedule.hpp>
#include <rondo/transport.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace rondo::inline v0::run {

/// A collective in flight: runs a schedule over a transport. poll() moves what can be moved and never blocks.
///
/// A send cursor and a receive cursor walk through the rounds of all segments; each may be in the middle of a message.
/// A send follows, byte by byte, the receive that it depends on, so that a chunk is folded and passed on while it is
/// still arriving. A receive waits only until the sends of earlier rounds are out, hence the oldest message can always
/// move and no buffer of the transport is too small.
template <schedule S, transport X>
class executor {
 public:
  /// `chunks` has s.chunks() entries; they, what `math` points to and `merged`, which is this call's alone, outlive the
  /// executor. `moves` says that a chunk
  /// may have its source elsewhere than its home.
  executor(S s, X& transport, std::span<chunk const> chunks, arithmetic const& math, marks<X>& marks,
           std::vector<std::uint8_t>& merged, bool moves, int segments)
      : schedule_(s), transport_(transport), marks_(marks), chunks_(chunks), math_(math), merged_(merged),
        moves_(moves), rank_(transport.rank()), segments_(segments), out_(s, rank_, segments), in_(s, rank_, segments) {
    if (moves) merged_.assign(chunks.size() * static_cast<std::size_t>(segments), 0);
  }

  bool done() const noexcept { return out_.done() && in_.done(); }

  /// The rank that this one waits for: the next sender, unless earlier sends have to get out first.
  rank_t waiting_for() const noexcept {
    return !in_.done() && out_.reached(in_.tick(), in_.segment()) ? in_.peer() : out_.peer();
  }

  /// Moves bytes until none moves; true if any did. Throws what the transport throws.
  bool poll() {
    bool moved = false;
    while (!marks_.mismatch()) {
      bool const sent = send_some();
      bool const received = receive_some();
      if (!sent && !received) break;
      moved = true;
    }
    return moved;
  }

 private:
  /// The part of chunk `c` that belongs to segment `k`, as [first, last) in bytes.
  std::pair<std::size_t, std::size_t> part(int c, int k) const noexcept {
    std::size_t const count = chunks_[static_cast<std::size_t>(c)].count;
    if (segments_ == 1) return {0, count * math_.element};
    std::size_t const grains = static_cast<std::size_t>(segments_) * math_.grain();
    std::size_t const each = (count + grains - 1) / grains * math_.grain();
    auto const edge = [&](int segment) {
      return std::min(count, each * static_cast<std::size_t>(segment)) * math_.element;
    };
    return {edge(k), k + 1 == segments_ ? count * math_.element : edge(k + 1)};
  }

  std::size_t flag(int c, int k) const noexcept {
    return static_cast<std::size_t>(k) * chunks_.size() + static_cast<std::size_t>(c);
  }

  /// Where the value of chunk `c` in segment `k` is now.
  std::byte const* value_of(int c, int k) const noexcept {
    chunk const& x = chunks_[static_cast<std::size_t>(c)];
    return !moves_ || merged_[flag(c, k)] ? x.home : x.source;
  }

  void note_merged(int c) noexcept {
    if (moves_) merged_[flag(c, in_.segment())] = 1;
  }

  /// How far the current chunk may be sent: all of it, or what has been merged of a receive of the same slice, or
  /// nothing.
  std::size_t sendable(std::size_t all) const noexcept {
    int const k = out_.segment();
    long tick = out_.tick() - 1;
    for (int i = out_.round() - 1; i >= 0 && !in_.passed(tick, k); --i, --tick) {
      step const earlier = schedule_.at(rank_, i);
      if (earlier.from == nobody || !overlap(earlier.in, out_.what(), schedule_.chunks())) continue;
      bool const following = in_.tick() == tick && in_.segment() == k && earlier.in == out_.what();
      if (!following || in_.index < out_.index) return 0;
      return in_.index > out_.index ? all : in_.offset;
    }
    return all;
  }

  /// Has the message under way any bytes from chunk `index` of it on? Else nothing may be held back for them.
  bool goes_on_at(int index) const noexcept {
    for (slice const what = out_.what(); index < what.count; ++index) {
      int const c = what.first + index;
      auto const [first, last] = part(c < schedule_.chunks() ? c : c - schedule_.chunks(), out_.segment());
      if (first != last) return true;
    }
    return false;
  }

  bool send_some() {
    bool moved = false;
    while (!out_.done()) {
      rank_t const q = out_.peer();
      slice const what = out_.what();
      if (!marks_.sent(q) && !marks_.send(q, goes_on_at(0))) return moved;
      // The count stands first, here and below, because nvcc takes "index <" for the beginning of a template.
      for (; what.count > out_.index; ++out_.index, out_.offset = 0) {
        int const c = out_.chunk();
        auto const [first, last] = part(c, out_.segment());
        std::size_t const all = last - first;
        while (out_.offset < all) {
          std::size_t const limit = sendable(all);
          // What follows a receive goes in whole pieces: many small ones would cost more than they gain.
          if (limit < all && limit < out_.offset + piece_) return moved;
          if (out_.offset == 0) outgoing_ = value_of(c, out_.segment()) + first;
          std::size_t const n = std::min(limit - out_.offset, piece_);
          bool const more = out_.offset + n == all && goes_on_at(out_.index + 1);
          std::size_t const accepted = transport_.write(q, {outgoing_ + out_.offset, n}, more);
          out_.offset += accepted;
          moved = moved || accepted != 0;
          if (accepted < n || (n == piece_ && !in_.done())) return moved;
        }
      }
      out_.next();
      moved = true;
    }
    return moved;
  }

  bool receive_some() {
    bool moved = false;
    while (!in_.done() && out_.reached(in_.tick(), in_.segment())) {
      rank_t const q = in_.peer();
      if (!marks_.receive(q)) return moved;
      slice const what = in_.what();
      bool const exchanged = !out_.passed(in_.tick(), in_.segment()) && out_.what() == what;
      for (; what.count > in_.index; ++in_.index, in_.offset = 0) {
        auto const [first, last] = part(in_.chunk(), in_.segment());
        std::size_t const all = last - first;
        while (in_.offset < all) {
          std::size_t limit = all;
          if (exchanged && out_.index <= in_.index) limit = out_.index < in_.index ? 0 : out_.offset;
          std::size_t const n = merge(q, first, std::min(limit - std::min(limit, in_.offset), piece_));
          if (n == 0) return moved;
          in_.offset += n;
          moved = true;
          if (n == piece_ && !out_.done()) return moved;
        }
      }
      in_.next();
      moved = true;
    }
    return moved;
  }

  /// Merges up to `limit` arrived bytes into the current chunk and returns their number.
  std::size_t merge(rank_t q, std::size_t first, std::size_t limit) {
    if (limit == 0) return 0;
    int const c = in_.chunk();
    std::byte* const out = chunks_[static_cast<std::size_t>(c)].home + first + in_.offset;
    if (in_.offset == 0) incoming_ = value_of(c, in_.segment()) + first;
    step const& s = in_.now();
    if (s.how == rondo::merge::overwrite) {
      std::size_t const n = transport_.read(q, {out, limit});
      if (n != 0) note_merged(c);
      return n;
    }
    auto const bytes = transport_.readable(q, math_.element);
    std::size_t const count = std::min(bytes.size(), limit) / math_.element;
    if (count == 0) return 0;
    note_merged(c);
    std::byte const* const mine = incoming_ + in_.offset;
    if (s.how == rondo::merge::fold)
      math_.fold(math_.op, out, mine, bytes.data(), count);
    else
      math_.fold(math_.op, out, bytes.data(), mine, count);
    if (s.completes && math_.finish) math_.finish(math_.context, out, count);
    transport_.consume(q, count * math_.element);
    return count * math_.element;
  }

  S schedule_;
  X& transport_;
  std::size_t piece_ = piece_bytes(transport_);  // between two looks at the other direction
  marks<X>& marks_;
  std::span<chunk const> chunks_;
  arithmetic math_;
  std::vector<std::uint8_t>& merged_;  // per segment and chunk: the value has moved from source to home
  bool moves_;
  rank_t rank_;
  int segments_;
  cursor<S, direction::send> out_;
  cursor<S, direction::receive> in_;
  std::byte const* outgoing_ = nullptr;
  std::byte const* incoming_ = nullptr;
};

}  // namespace rondo::inline v0::run
