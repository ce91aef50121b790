#pragma once

#include <rondo/run/buffer.hpp>
#include <rondo/run/marks.hpp>
#include <rondo/schedule.hpp>
#include <rondo/transport.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace rondo::inline v0::run {

/// Messages up to this size are moved as a whole: what the shared-memory streams publish at once, so that waiting for
/// the last byte costs no overlap.
inline constexpr std::size_t eager_bytes = std::size_t{16} << 10;

/// A collective of small messages in flight: the schedule, round by round, a message at a time.
///
/// Sends run ahead of receives where the schedule lets them. poll() never blocks. `executor` is its counterpart for
/// large messages; both send the same bytes in the same order.
template <schedule S, transport X>
class eager {
 public:
  /// No message of the schedule may have more than eager_bytes; `chunks`, what `math` points to and `merged`, which
  /// is this call's alone, outlive it.
  eager(S s, X& transport, std::span<chunk const> chunks, arithmetic const& math, marks<X>& marks,
        std::vector<std::uint8_t>& merged, bool moves)
      : schedule_(s), transport_(transport), marks_(marks), chunks_(chunks), math_(math), merged_(merged),
        rank_(transport.rank()), rounds_(s.rounds()), moves_(moves) {
    if (moves_) merged_.assign(chunks.size(), 0);
    load(out_, sending_);
    load(in_, receiving_);
  }

  bool done() const noexcept { return receiving_ == rounds_; }
  /// The rank that this one waits for: the reader of a message that has begun to go out, else the next sender.
  rank_t waiting_for() const noexcept { return message_ != 0 || in_.from == nobody ? out_.to : in_.from; }

  /// Moves messages until none can; true if any did. Throws what the transport throws.
  bool poll() {
    bool moved = false;
    while (receiving_ < rounds_) {
      while (sending_ < rounds_ && independent()) {
        if (out_.to != nobody && !send()) return moved;
        load(out_, ++sending_);
        moved = true;
      }
      if (receiving_ == sending_ || (in_.from != nobody && !receive())) return moved;
      load(in_, ++receiving_);
      moved = true;
    }
    return moved;
  }

 private:
  static constexpr std::size_t joined_bytes = 1024;  // up to here a copy is cheaper than a second write

  void load(step& s, int round) const noexcept {
    if (round < rounds_) s = schedule_.at(rank_, round);
  }

  /// The message of round sending_ needs nothing that has yet to arrive. One without chunks says just that everything
  /// before it has: barriers live on that.
  bool independent() const noexcept {
    if (out_.to != nobody && out_.out.count == 0) return receiving_ == sending_;
    for (int i = receiving_; i < sending_; ++i)
      if (step const s = i == receiving_ ? in_ : schedule_.at(rank_, i);
          s.from != nobody && overlap(s.in, out_.out, schedule_.chunks()))
        return false;
    return true;
  }

  chunk const& at(slice what, int index) const noexcept {
    int const c = what.first + index;
    return chunks_[static_cast<std::size_t>(c < schedule_.chunks() ? c : c - schedule_.chunks())];
  }

  bool merged(chunk const& c) const noexcept {
    return !moves_ || merged_[static_cast<std::size_t>(&c - chunks_.data())];
  }

  std::size_t bytes_of(slice what) const noexcept {
    std::size_t n = 0;
    for (int i = 0; i < what.count; ++i) n += at(what, i).count;
    return n * math_.element;
  }

  bool send() {
    rank_t const q = out_.to;
    if (message_ == 0) {
      std::size_t const payload = bytes_of(out_.out);
      std::size_t const head = marks_.sent(q) ? 0 : sizeof(fingerprint);
      message_ = head + payload;
      if (message_ <= joined_bytes) {
        if (head != 0) std::memcpy(joined_.data(), &marks_.outgoing(q), head);
        std::size_t filled = head;
        for (int i = 0; i < out_.out.count; ++i) {
          chunk const& c = at(out_.out, i);
          if (c.count != 0)
            std::memcpy(joined_.data() + filled, merged(c) ? c.home : c.source, c.count * math_.element);
          filled += c.count * math_.element;
        }
      }
    }
    return message_ <= joined_bytes ? send_joined(q) : send_scattered(q);
  }

  bool send_joined(rank_t q) {
    if (message_ != 0) {
      sent_ += transport_.write(q, {joined_.data() + sent_, message_ - sent_}, false);
      if (sent_ < message_) return false;
    }
    marks_.note_sent(q);
    message_ = sent_ = 0;
    return true;
  }

  /// Has the message any bytes after chunk `index` of it? Else nothing may be held back for them.
  bool goes_on_after(int index) const noexcept {
    while (++index < out_.out.count)
      if (at(out_.out, index).count != 0) return true;
    return false;
  }

  bool send_scattered(rank_t q) {
    if (!marks_.send(q, true)) return false;
    for (; index_ < out_.out.count; ++index_, sent_ = 0) {
      chunk const& c = at(out_.out, index_);
      std::size_t const all = c.count * math_.element;
      std::byte const* const from = merged(c) ? c.home : c.source;
      if (all != 0) sent_ += transport_.write(q, {from + sent_, all - sent_}, goes_on_after(index_));
      if (sent_ < all) return false;
    }
    index_ = 0;
    message_ = sent_ = 0;
    return true;
  }

  bool receive() {
    rank_t const q = in_.from;
    std::size_t const payload = bytes_of(in_.in);
    std::size_t const head = marks_.received(q) ? 0 : sizeof(fingerprint);
    if (head + payload == 0) return true;
    auto const bytes = transport_.readable(q, head + payload);
    if (bytes.empty()) {
      if (head != 0 && payload != 0) marks_.receive(q);
      return false;
    }
    if (head != 0 && !marks_.accept(q, bytes.data())) return false;
    std::byte const* from = bytes.data() + head;
    for (int i = 0; i < in_.in.count; ++i) {
      chunk const& c = at(in_.in, i);
      merge(c, from);
      from += c.count * math_.element;
    }
    transport_.consume(q, head + payload);
    return true;
  }

  void merge(chunk const& c, std::byte const* theirs) {
    std::byte const* const mine = merged(c) ? c.home : c.source;
    if (moves_) merged_[static_cast<std::size_t>(&c - chunks_.data())] = 1;
    if (c.count == 0) return;
    switch (in_.how) {
      case rondo::merge::overwrite: std::memcpy(c.home, theirs, c.count * math_.element); return;
      case rondo::merge::fold: math_.fold(math_.op, c.home, mine, theirs, c.count); break;
      case rondo::merge::fold_front: math_.fold(math_.op, c.home, theirs, mine, c.count); break;
    }
    if (in_.completes && math_.finish) math_.finish(math_.context, c.home, c.count);
  }

  S schedule_;
  X& transport_;
  marks<X>& marks_;
  std::span<chunk const> chunks_;
  arithmetic math_;
  std::vector<std::uint8_t>& merged_;  // per chunk: the value has moved from source to home
  rank_t rank_;
  int rounds_;
  bool moves_;
  int sending_ = 0, receiving_ = 0;  // rounds
  step out_{}, in_{};
  std::size_t message_ = 0, sent_ = 0;  // bytes of the message under way, and how many of them are out
  int index_ = 0;
  std::array<std::byte, joined_bytes> joined_;
};

}  // namespace rondo::inline v0::run
