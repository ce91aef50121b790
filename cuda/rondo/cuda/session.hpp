#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/board.hpp>
#include <rondo/schedule/arithmetic.hpp>
#include <rondo/types.hpp>

#include <cstddef>
#include <cstdint>

namespace rondo::inline v0::device {

/// Waits until look(), which reads what `peer` counts up, has come as far as `wanted`. False, and a report, if it takes
/// longer than the rank's patience, or if somebody else of the rank has given up.
template <class Context, int Ranks, class Look>
RONDO_HD bool wait_until(Context& context, link<Ranks> const& ranks, rank_t peer, flag wanted, Look const& look) {
  if (reached(look(), wanted)) return true;
  constexpr unsigned looks = 64;  // between two at the clock and at the report, which is far away
  std::uint64_t const start = context.nanoseconds();
  for (;;) {
    flag seen = 0;
    for (unsigned i = 0; i < looks; ++i) {
      context.pause();
      seen = look();
      if (reached(seen, wanted)) return true;
    }
    if (context.load_relaxed(ranks.report->raised) != fault::none) return false;
    if (context.nanoseconds() - start > ranks.patience) {
      fault& report = *ranks.report;
      if (context.exchange(report.claimed, flag{1}) == 0) {
        report.rank = ranks.rank, report.peer = peer, report.block = context.block();
        report.seen = seen, report.wanted = wanted;
        context.store_release(report.raised, flag{fault::waited_too_long});
      }
      return false;
    }
  }
}

/// The same for a flag. What the peer had stored before it counted is visible to this thread afterwards.
template <class Context, int Ranks>
RONDO_HD bool wait_for(Context& context, link<Ranks> const& ranks, rank_t peer, flag wanted, flag& f) {
  return wait_until(context, ranks, peer, wanted, [&] { return context.load_acquire(f); });
}

/// A block's part in a call: barriers with the same block of all other ranks, and the windows of the arenas.
///
/// Windows take turns: what goes through window k lies in memory number k mod 2. A block that has passed the barrier of
/// window k + 1 knows that its peers are done with window k, so that one barrier for each window is enough. Between
/// calls it takes more, since blocks may differ in number: the kernels of a rank run one after the other, hence a peer
/// that sends anything in call k + 1 has finished call k.
template <class Context, int Ranks>
class session {
 public:
  RONDO_HD session(Context& context, link<Ranks> const& ranks) noexcept
      : context_(context), ranks_(ranks), barriers_(ranks.board(ranks.rank).barriers[context.block()]),
        window_(ranks.board(ranks.rank).windows[context.block()]), opened_(window_) {}

  RONDO_HD rank_t rank() const noexcept { return ranks_.rank; }

  /// The rank `distance` places to the right. Ranks that begin with different peers spread over the links.
  RONDO_HD rank_t right(int distance) const noexcept { return rondo::detail::wrap(ranks_.rank + distance, Ranks); }

  /// Calls function(i) for i < count, each i in one thread of the rank, the same in every call of this kernel: what a
  /// thread has stored at i it may load at i without asking anybody.
  template <class F>
  RONDO_HD void each(std::size_t count, F const& function) const {
    std::size_t const step = std::size_t{context_.blocks()} * context_.threads();
    for (std::size_t i = std::size_t{context_.block()} * context_.threads() + context_.thread(); i < count; i += step)
      function(i);
  }

  /// Calls piece(first, n) for `count` things, as many as there is room for in a window at a time, and ends the call
  /// after the last one. A piece that returns false, in all threads, has given up, and the kernel ends.
  template <class F>
  RONDO_HD void in_windows(std::size_t count, std::size_t room, F const& piece) {
    for (std::size_t first = 0; first < count; first += room, next_window())
      if (!piece(first, count - first < room ? count - first : room)) return;
    close();
  }

  /// Where the present window lies in the arena of rank q.
  RONDO_HD std::byte* window(rank_t q) const noexcept {
    return ranks_.arenas[q] + ranks_.shape.windows_at(Ranks) + (window_ & 1) * ranks_.shape.window_bytes;
  }

  /// Number of the present window.
  RONDO_HD flag number() const noexcept { return window_; }
  RONDO_HD void next_window() noexcept { ++window_; }

  /// Meets this block of all other ranks. What they have stored before is visible to all threads of the block
  /// afterwards. False, in all threads, if somebody did not come: the kernel must end.
  RONDO_HD bool barrier() {
    context_.sync();  // what all threads have done comes before what the flags say
    ++barriers_;
    unsigned const row = context_.block();
    for (unsigned q = context_.thread(); q < Ranks; q += context_.threads())
      context_.store_release(ranks_.board(static_cast<rank_t>(q)).arrived[row][ranks_.rank], barriers_);
    bool all = true;
    for (unsigned q = context_.thread(); q < Ranks; q += context_.threads())
      all = wait_for(context_, ranks_, static_cast<rank_t>(q), barriers_, own().arrived[row][q]) && all;
    return context_.sync_and(all);
  }

  /// Ends the call. What is kept for the next one is written for the blocks too that this launch does not have.
  RONDO_HD void close() {
    if (window_ >> renewal != opened_ >> renewal) renew_words();
    context_.sync();  // all threads have read what is overwritten now
    if (context_.thread() != 0) return;
    own().barriers[context_.block()] = barriers_;
    for (unsigned b = context_.block(); b < max_blocks; b += context_.blocks()) own().windows[b] = window_;
  }

 private:
  static constexpr unsigned renewal = 30;  // bits of a window's number

  RONDO_HD device::board& own() const noexcept { return ranks_.board(ranks_.rank); }

  /// A word that was not used for half the range of numbers would look as if it had come. So every word gets a younger
  /// number long before, unless somebody stores to it at this moment.
  RONDO_HD void renew_words() {
    auto* const words = reinterpret_cast<std::uint64_t*>(ranks_.arenas[ranks_.rank] + ranks_.shape.words_at());
    std::size_t const count = (ranks_.shape.windows_at(Ranks) - ranks_.shape.words_at()) / sizeof(std::uint64_t);
    each(count, [&](std::size_t i) {
      std::uint64_t const word = context_.load_relaxed(words[i]);
      auto const age = static_cast<std::int32_t>(window_ - static_cast<flag>(word >> 32));  // below 0: of the next call
      if (age > 1 << (renewal - 1)) context_.replace(words[i], word, std::uint64_t{window_} << 32);
    });
  }

  Context& context_;
  link<Ranks> const& ranks_;
  flag barriers_;
  flag window_;
  flag opened_;  // number of the call's first window
};

}  // namespace rondo::inline v0::device
