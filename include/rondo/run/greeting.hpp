#pragma once

#include <rondo/detail/prefetch.hpp>
#include <rondo/fingerprint.hpp>
#include <rondo/memory.hpp>
#include <rondo/run/boards.hpp>
#include <rondo/run/marks.hpp>
#include <rondo/schedule/arithmetic.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rondo::inline v0::run {

/// How a call over boards begins: every rank sends a letter to every other one, and waits for theirs. A letter says
/// which call this is, and brings a few bytes.
///
/// Two letters per pair are enough, and need no credits: who is in call k + 1 has had all letters of call k, so
/// whoever has finished call k + 1 knows that those may be overwritten.
template <addressable X>
class greeting {
 public:
  greeting(X& transport, workspace& memory, fingerprint const& mark) noexcept
      : transport_(transport), memory_(memory), shared_(memory.shared), mark_(mark), call_(++shared_.calls) {}

  std::uint64_t call() const noexcept { return call_; }

  /// Sends a letter to every other rank; write(q, letter&) puts the text into it. The next rank comes first, so that
  /// not all write to the same one.
  template <class Write>
  void send(Write&& write) {
    digest_ = digest(mark_);
    for (rank_t i = 1; i < shared_.size(); ++i) {
      rank_t const q = detail::wrap(shared_.rank() + i, shared_.size());
      letter& text = shared_.letter_to(q, call_);
      shared_.mark_to(q, call_) = mark_;  // nobody reads it unless calls differ, so it stays in this core's cache
      write(q, text);
      text.digest = digest_;
      text.number.store(call_, std::memory_order_release);
      transport_.notify(q);
    }
    sent_ = true;
  }

  bool sent() const noexcept { return sent_; }

  /// Takes the lines of the next call's letters back from their readers. That is most of what it costs to send them,
  /// and between two calls nobody waits for it.
  void expect_another() const noexcept {
    for (rank_t q = 0; q < shared_.size(); ++q)
      if (q != shared_.rank())
        detail::prefetch_to_write(reinterpret_cast<std::byte const*>(&shared_.letter_to(q, call_ + 1)),
                                  offsetof(letter, text) + 1);
  }

  /// Are the letters of all ranks here? False also when one belongs to another call, which mismatch() then tells.
  bool arrived() noexcept {
    for (; next_ < shared_.size() && !mismatch_; ++next_) {
      if (next_ == shared_.rank()) continue;
      letter const& text = shared_.letter_from(next_, call_);
      if (text.number.load(std::memory_order_acquire) != call_) return false;
      if (text.digest != digest_) mismatch_ = disagreement{next_, mark_, shared_.mark_from(next_, call_)};
    }
    return !mismatch_;
  }

  /// The rank whose letter is missing.
  rank_t waiting_for() const noexcept { return next_ < shared_.size() ? next_ : nobody; }
  std::optional<disagreement> const& mismatch() const noexcept { return mismatch_; }

  /// Looks for a rank that is in another call, which it makes over streams.
  void look_around() {
    if (mismatch_) return;
    marks<X> streams(transport_, mark_, memory_);
    streams.look_around();
    mismatch_ = streams.mismatch();
  }

 private:
  X& transport_;
  workspace& memory_;
  boards& shared_;
  fingerprint const& mark_;
  std::uint64_t call_;
  std::uint64_t digest_ = 0;
  rank_t next_ = 0;
  bool sent_ = false;
  std::optional<disagreement> mismatch_;
};

/// A rank that is in a call over boards which this rank has not made, though it should be in the call of `mine`: the
/// same collective, or a message from or to that rank. Ranks that are merely ahead are left alone.
inline std::optional<disagreement> stray_on_boards(boards const& shared, fingerprint const& mine, rank_t awaited) {
  std::uint64_t const next = shared.calls + 1;
  for (rank_t q = 0; q < shared.size(); ++q) {
    if (q == shared.rank() || shared.letter_from(q, next).number.load(std::memory_order_acquire) != next) continue;
    fingerprint const theirs = shared.mark_from(q, next);
    if (mine.sequence != 0 ? theirs.sequence == mine.sequence : q == awaited) return disagreement{q, mine, theirs};
  }
  return {};
}

}  // namespace rondo::inline v0::run
