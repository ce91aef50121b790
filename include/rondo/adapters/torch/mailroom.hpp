#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/error.hpp>
#include <rondo/fingerprint.hpp>
#include <rondo/group.hpp>
#include <rondo/pollable.hpp>
#include <rondo/transports/bootstrap/wakeup.hpp>
#include <rondo/wait.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <poll.h>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// What one end of a message says about it. `receipt` is called once, on the thread of the mailroom: with the rank at
/// the other end, or with what went wrong.
struct parcel {
  std::span<std::byte> bytes;  ///< only read if it is sent
  rondo::short_name type;      ///< of its elements; both ends must say the same
  rank_t peer;                 ///< the other end; nobody: receive from any rank
  std::uint64_t tag;
  group::clock::time_point deadline;
  std::function<void(rank_t, std::exception_ptr)> receipt;
};

/// Messages between two ranks that are told apart by tags. Between two ranks, those of one tag arrive in the order of
/// the sends; those of different tags may be received in any order. Nothing blocks, and no order of sends and receives
/// can deadlock; a message that nobody wants yet stays with its sender, unless one behind it is wanted.
///
/// A thread of its own moves everything. It is started by the first call and sleeps while there is nothing to do.
template <pollable X>
class mailroom {
 public:
  mailroom(std::shared_ptr<group> ranks, X transport)
      : group_(std::move(ranks)), transport_(std::move(transport)), desks_(static_cast<std::size_t>(group_->size())) {}

  /// Waits for what is being sent, whose deadlines bound the wait; what is still to be received fails.
  ~mailroom() {
    leaving_.store(true);
    bell_.ring();
    if (thread_.joinable()) thread_.join();
  }

  void send(parcel p) { hand_in(std::move(p), true); }
  void receive(parcel p) { hand_in(std::move(p), false); }

 private:
  using clock = group::clock;

  struct header {
    std::uint64_t tag, bytes;
    rondo::short_name type;
  };
  struct outgoing {
    parcel what;
    std::size_t written = 0;  ///< of the header and the bytes
  };
  struct shelved {
    header head;
    std::vector<std::byte> bytes;
  };

  /// What one peer sends and is sent.
  struct desk {
    std::deque<outgoing> out;
    std::optional<header> arriving;  ///< the message at the head of the stream
    std::optional<parcel> taker;     ///< who gets it
    std::optional<shelved> aside;    ///< or where it is kept, because one behind it is wanted
    std::size_t got = 0;
    std::deque<shelved> shelf;
    std::optional<clock::time_point> left;  ///< when this rank was seen to have left in good order
    bool gone = false;                      ///< and so long ago that nothing more comes
    bool ended = false;                     ///< and the stream says so
  };

  static constexpr std::chrono::milliseconds longest_sleep{50};  // verdicts and deadlines are looked at this often
  static constexpr std::chrono::milliseconds grace{300};  // for the group to know who was lost, for last bytes to come

  void hand_in(parcel p, bool is_sent) {
    std::scoped_lock const lock(mutex_);
    if (!thread_.joinable()) thread_ = quiet_thread([this] { run(); });
    handed_in_.push_back({std::move(p), is_sent});
    bell_.ring();
  }

  void run() {
    backoff rest(true);
    for (;;) {
      take_in();
      if (leaving_.load() && !sending())
        return fail_all(std::make_exception_ptr(
            error("the ranks part while a message is still to be received: wait for its handle first")));
      try {
        if (!idle() && group_->failed()) group_->verdict().raise();
        if (move()) {
          rest.reset();
          continue;
        }
        if (!idle()) check();
        if (idle() || rest.pause().count() != 0) sleep();
      } catch (std::exception const& e) {
        if (!group_->failed()) group_->report({failure::kind::other, group_->rank(), e.what()});
        fail_all(std::current_exception());
      }
    }
  }

  bool sending() const {
    return std::any_of(desks_.begin(), desks_.end(), [](desk const& d) { return !d.out.empty(); });
  }
  bool idle() const {
    return receiving_.empty() && std::all_of(desks_.begin(), desks_.end(),
                                             [](desk const& d) { return d.out.empty() && !d.taker && !d.aside; });
  }

  void sleep() {
    bool const watches = !idle();
    polled_.assign(1, {bell_.fd(), POLLIN, 0});
    auto limit = any_time;
    if (watches) limit = std::min<std::chrono::nanoseconds>(transport_.watch(polled_), longest_sleep);
    poll_until_ready(polled_, limit);
    if (polled_.front().revents != 0) bell_.hush();
    if (watches) transport_.watched(std::span(polled_).subspan(1));
  }

  void take_in() {
    std::scoped_lock const lock(mutex_);
    for (auto& [p, is_sent] : handed_in_) {
      if (is_sent)
        by_rank(desks_, p.peer).out.push_back({std::move(p)});
      else
        receiving_.push_back(std::move(p));
    }
    handed_in_.clear();
  }

  bool move() {
    bool moved = serve_from_shelves();
    for (rank_t q = 0; q < group_->size(); ++q) {
      desk& d = by_rank(desks_, q);
      if (q == group_->rank()) continue;
      if (!d.out.empty() && !d.gone) moved = attempt(d, q, &mailroom::move_out) || moved;
      if ((awaits(q) || d.taker || d.aside) && !d.ended) moved = attempt(d, q, &mailroom::move_in) || moved;
    }
    return moved;
  }

  /// Calls step(desk, rank). A peer that has left in good order ends the stream; any other loss is thrown.
  bool attempt(desk& d, rank_t q, bool (mailroom::*step)(desk&, rank_t)) {
    try {
      return (this->*step)(d, q);
    } catch (peer_lost const&) {
      auto const until = clock::now() + grace;
      while (!group_->failed() && !group_->departed(q) && clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (!group_->departed(q))
        give_up({failure::kind::peer_lost, q, "rank " + std::to_string(q) + " was lost in a send or receive"});
      d.gone = true;
      d.ended = d.ended || step == &mailroom::move_in;
      return false;
    }
  }

  /// Does a receive wait for a message of this rank?
  bool awaits(rank_t q) const {
    return std::any_of(receiving_.begin(), receiving_.end(),
                       [q](parcel const& p) { return p.peer == q || p.peer == nobody; });
  }

  bool move_out(desk& d, rank_t q) {
    bool moved = false;
    while (!d.out.empty()) {
      auto& [what, written] = d.out.front();
      header const head{what.tag, what.bytes.size(), what.type};
      std::size_t const end = sizeof head + what.bytes.size();
      while (written < end) {
        bool const heading = written < sizeof head;
        auto const rest = heading ? std::as_bytes(std::span(&head, 1)).subspan(written)
                                  : std::span<std::byte const>(what.bytes).subspan(written - sizeof head);
        auto const n = transport_.write(q, rest, heading && !what.bytes.empty());
        if (n == 0) return moved;
        written += n;
        moved = true;
      }
      auto const receipt = std::move(what.receipt);
      d.out.pop_front();
      receipt(q, nullptr);
    }
    return moved;
  }

  bool move_in(desk& d, rank_t q) {
    bool moved = false;
    for (;;) {
      if (!d.arriving) {
        auto const bytes = transport_.readable(q, sizeof(header));
        if (bytes.empty()) return moved;
        std::memcpy(&d.arriving.emplace(), bytes.data(), sizeof(header));
        transport_.consume(q, sizeof(header));
        d.got = 0;
      }
      if (!d.taker && !d.aside) {
        if (auto const found = taker(q, d.arriving->tag); found != receiving_.end()) {
          check_alike(*d.arriving, *found, q);
          d.taker = std::move(*found);
          receiving_.erase(found);
        } else if (awaits(q)) {
          d.aside = shelved{*d.arriving, std::vector<std::byte>(d.arriving->bytes)};
        } else {
          return moved;
        }
      }
      auto const into = d.taker ? d.taker->bytes : std::span(d.aside->bytes);
      while (d.got < into.size()) {
        auto const n = transport_.read(q, into.subspan(d.got));
        if (n == 0) return moved;
        d.got += n;
        moved = true;
      }
      finish(d, q);
      moved = true;
    }
  }

  /// The oldest receive that a message suits.
  auto taker(rank_t q, std::uint64_t tag) {
    return std::find_if(receiving_.begin(), receiving_.end(),
                        [&](parcel const& p) { return (p.peer == q || p.peer == nobody) && p.tag == tag; });
  }

  void finish(desk& d, rank_t q) {
    d.arriving.reset();
    if (d.aside) d.shelf.push_back(*std::exchange(d.aside, std::nullopt));
    if (d.taker) std::exchange(d.taker, std::nullopt)->receipt(q, nullptr);
  }

  /// Hands out what was kept aside to who wants it by now; true if there was anything.
  bool serve_from_shelves() {
    bool moved = false;
    for (rank_t q = 0; q < group_->size(); ++q) {
      auto& shelf = by_rank(desks_, q).shelf;
      for (auto kept = shelf.begin(); kept != shelf.end();) {
        auto const found = taker(q, kept->head.tag);
        if (found == receiving_.end()) {
          ++kept;
          continue;
        }
        check_alike(kept->head, *found, q);
        std::copy(kept->bytes.begin(), kept->bytes.end(), found->bytes.begin());
        auto const receipt = std::move(found->receipt);
        receiving_.erase(found);
        kept = shelf.erase(kept);
        receipt(q, nullptr);
        moved = true;
      }
    }
    return moved;
  }

  void check_alike(header const& head, parcel const& p, rank_t q) {
    if (head.bytes == p.bytes.size() && head.type == p.type) return;
    auto const said = [](std::uint64_t bytes, rondo::short_name const& type) {
      return std::to_string(bytes) + " bytes of " + type.data();
    };
    give_up({failure::kind::mismatch, q,
             "rank " + std::to_string(q) + " sent " + said(head.bytes, head.type) + " with tag " +
                 std::to_string(head.tag) + ", but rank " + std::to_string(group_->rank()) + " receives " +
                 said(p.bytes.size(), p.type) + ": give both ends tensors of one size and type"});
  }

  /// After a pass in which nothing moved.
  void check() {
    if (group_->failed()) group_->verdict().raise();
    auto const now = clock::now();
    for (rank_t q = 0; q < group_->size(); ++q) {
      desk& d = by_rank(desks_, q);
      if (!d.left && group_->departed(q)) d.left = now;
      d.gone = d.gone || (d.left && now > *d.left + grace);
      if (!d.out.empty()) check(d.out.front().what, "send to", now);
      if (d.taker) check(*d.taker, "receive from", now);
    }
    for (parcel const& p : receiving_) check(p, "receive from", now);
  }

  void check(parcel const& p, char const* call, clock::time_point now) {
    auto const what = [&] {
      return std::string(call) + ' ' + (p.peer == nobody ? "any rank" : "rank " + std::to_string(p.peer)) +
             " with tag " + std::to_string(p.tag);
    };
    bool alone = true;
    for (rank_t q = 0; q < group_->size(); ++q)
      if (q != group_->rank() && (p.peer == nobody || p.peer == q)) alone = alone && by_rank(desks_, q).gone;
    if (alone)
      give_up({failure::kind::peer_lost, p.peer,
               (p.peer == nobody ? "all other ranks have left" : "rank " + std::to_string(p.peer) + " has left") +
                   ", and rank " + std::to_string(group_->rank()) + " still waits in a " + what()});
    if (now >= p.deadline)
      give_up({failure::kind::deadline, p.peer,
               "rank " + std::to_string(group_->rank()) + " waited in a " + what() + " until its deadline"});
  }

  [[noreturn]] void give_up(failure why) {
    group_->report(why);
    (group_->failed() ? group_->verdict() : why).raise();
  }

  /// Everything that was handed in fails.
  void fail_all(std::exception_ptr const& why) {
    take_in();
    std::vector<parcel> all(std::make_move_iterator(receiving_.begin()), std::make_move_iterator(receiving_.end()));
    receiving_.clear();
    for (desk& d : desks_) {
      for (auto& o : d.out) all.push_back(std::move(o.what));
      if (d.taker) all.push_back(std::move(*d.taker));
      d = {};
    }
    for (auto& p : all) p.receipt(nobody, why);
  }

  std::shared_ptr<group> group_;
  X transport_;
  std::vector<desk> desks_;
  std::deque<parcel> receiving_;  // in the order of the calls
  std::vector<pollfd> polled_;

  std::mutex mutex_;
  std::vector<std::pair<parcel, bool>> handed_in_;
  std::thread thread_;
  wakeup bell_;
  std::atomic<bool> leaving_{false};
};

}  // namespace rondo::inline v0::detail
