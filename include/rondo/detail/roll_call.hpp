#pragma once

#include <rondo/communicator.hpp>
#include <rondo/types.hpp>
#include <rondo/work.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace rondo::inline v0::detail {

/// Who is there for a step. The first rank that is tells all others how long it will wait; who is not there by then is
/// late. Each rank sends its word to all others, once in a step, and so all agree.
///
/// Two threads of a rank use it: one that computes, and one that waits and communicates in its place.
template <transport X>
class roll_call {
 public:
  using clock = std::chrono::steady_clock;

  /// What a rank tells the others.
  struct word {
    double weight = 0, own = 0;  ///< own: seconds since the last step was reduced
    std::int64_t patience = 0;   ///< milliseconds
    std::uint64_t here = 0;      ///< 0: this rank is late
  };

  /// `ranks` must outlive this.
  explicit roll_call(communicator<X>& ranks)
      : ranks_(ranks), words_(static_cast<std::size_t>(ranks.size())), coming_(words_.size()), going_(words_.size()) {}

  /// A step begins, of which this rank has `weight` so far. Before anybody calls hold().
  void begin(double weight, std::chrono::milliseconds patience) {
    presence_ = presence::awaited;
    weight_ = weight;
    patience_ = std::clamp(patience, std::chrono::milliseconds(0), longest);
  }

  /// The thread that computes: this rank is there. If it is not too late, it has to call enter() soon.
  bool arrive() {
    std::scoped_lock const lock(mutex_);
    if (presence_ == presence::late) return false;
    presence_ = presence::entering;
    return true;
  }

  /// Takes part with `weight` more.
  void enter(double weight) {
    {
      std::scoped_lock const lock(mutex_);
      weight_ += weight;
      presence_ = presence::here;
    }
    news_.notify_all();
  }

  /// The other thread: returns when this rank takes part, or must go without, and has told the others so. `last`: when
  /// the last step was reduced. The next collective waits for the words of all ranks; after it they can be read.
  bool hold(clock::time_point last) {
    std::fill(words_.begin(), words_.end(), word{});
    each_other([&](std::size_t q, rank_t peer) {
      coming_[q] = ranks_.start_receive(std::span(&words_[q], 1), peer, {.deadline = longest});
    });
    word& mine = words_[static_cast<std::size_t>(ranks_.rank())];
    mine = wait(last);
    each_other([&](std::size_t q, rank_t peer) { going_[q] = ranks_.start_send(std::span(&mine, 1), peer); });
    return mine.here != 0;
  }

  /// By rank. Throws what went wrong with them.
  std::vector<word> const& words() {
    for (auto* const calls : {&coming_, &going_})
      for (work& call : *calls) call.wait();
    return words_;
  }

 private:
  static constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 365);  // the clock ends later
  static constexpr std::chrono::milliseconds nap{1};  // how late a rank may learn that others are there

  enum class presence : std::uint8_t { awaited, entering, here, late };

  word wait(clock::time_point last) {
    auto const here = [&] { return presence_ == presence::here; };
    std::optional<clock::time_point> until;
    std::unique_lock lock(mutex_);
    while (!here()) {
      if (presence_ == presence::entering) {
        news_.wait(lock, here);
      } else if (until && clock::now() >= *until) {
        presence_ = presence::late;
        break;
      } else {
        auto const soon = clock::now() + nap;
        if (news_.wait_until(lock, until ? std::min(*until, soon) : soon, here) || until) continue;
        lock.unlock();
        until = end_of_patience();
        lock.lock();
      }
    }
    return {weight_, std::chrono::duration<double>(clock::now() - last).count(), patience_.count(), here()};
  }

  /// Counted from now, if a word has come of a rank that is there.
  std::optional<clock::time_point> end_of_patience() {
    std::optional<clock::time_point> end;
    each_other([&](std::size_t q, rank_t) {
      if (!end && coming_[q].test() && words_[q].here != 0)
        end = clock::now() + std::chrono::milliseconds(words_[q].patience);
    });
    return end;
  }

  template <class F>
  void each_other(F&& f) {
    for (rank_t q = 0; q < ranks_.size(); ++q)
      if (q != ranks_.rank()) f(static_cast<std::size_t>(q), q);
  }

  communicator<X>& ranks_;
  std::mutex mutex_;
  std::condition_variable news_;
  presence presence_ = presence::awaited;
  double weight_ = 0;
  std::chrono::milliseconds patience_{};
  std::vector<word> words_;  // by rank
  std::vector<work> coming_, going_;
};

}  // namespace rondo::inline v0::detail
