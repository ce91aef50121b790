#pragma once

#include <rondo/collectives/request.hpp>
#include <rondo/communicator.hpp>
#include <rondo/types.hpp>
#include <rondo/work.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// Messages of one size from one stage of a pipeline to the next: in order, each copied into a slot, so that the sender
/// computes on while it travels.
///
/// send() blocks only while all slots are on their way, which never keeps messages in other directions or from other
/// ranks from moving; receive() blocks until its message is there. Both throw what a send or receive of a communicator
/// throws. Two channels of one communicator between the same ranks in the same direction would take each other's
/// messages: give the second one a duplicate() of it.
template <transport X, element T = float>
class channel {
 public:
  /// This rank receives messages of `count` elements from `from` and sends to `to`; `nobody` at an end of the pipeline.
  /// Local: no other rank takes part. `ranks` must outlive this.
  channel(communicator<X>& ranks, rank_t from, rank_t to, std::size_t count, int slots = 1)
      : ranks_(ranks), from_(from), to_(to), count_(count) {
    collectives::require(slots > 0, [&] {
      return "a channel needs a slot, not " + std::to_string(slots) + ": one is enough for one_f_one_b";
    });
    auto const each = static_cast<std::size_t>(slots);
    out_.resize(to == nobody ? 0 : each, std::vector<T>(count));
    sent_.resize(out_.size());
    in_.resize(from == nobody ? 0 : each + 1, std::vector<T>(count));  // one of them is the caller's
  }

  /// Returns when `message` may be used again. Sends nothing to nobody.
  void send(std::span<T const> message) {
    if (to_ == nobody) return;
    collectives::check_size("send", "message", message, count_);
    sent_[next_out_].wait();
    std::copy(message.begin(), message.end(), out_[next_out_].begin());
    sent_[next_out_] = ranks_.start_send(out_[next_out_], to_);
    next_out_ = (next_out_ + 1) % out_.size();
  }

  /// The next message, valid until the next call. Empty from nobody.
  std::span<T> receive() {
    if (from_ == nobody) return {};
    held_ = false;
    if (coming_.empty()) expected_ = std::max(expected_, std::size_t{1});
    take_in();
    coming_.front().wait();
    coming_.pop_front();
    auto const slot = next_in_;
    next_in_ = (next_in_ + 1) % in_.size();
    held_ = true;
    take_in();
    return in_[slot];
  }

  /// Says that `messages` more will be sent, which then travel before they are asked for, as far as there are slots.
  void expect(int messages) {
    if (from_ == nobody) return;
    expected_ += static_cast<std::size_t>(messages);
    take_in();
  }

  /// Returns when all messages are out.
  void drain() {
    for (auto& call : sent_) call.wait();
  }

 private:
  /// Starts to receive into every slot that is free and will be used.
  void take_in() {
    for (; expected_ != 0 && coming_.size() + (held_ ? 1 : 0) < in_.size(); --expected_)
      coming_.push_back(ranks_.start_receive(in_[(next_in_ + coming_.size()) % in_.size()], from_));
  }

  communicator<X>& ranks_;
  rank_t from_, to_;
  std::size_t count_;
  std::vector<std::vector<T>> out_, in_;
  std::vector<work> sent_;   // by slot
  std::deque<work> coming_;  // into the slots from next_in_ on
  std::size_t next_out_ = 0, next_in_ = 0, expected_ = 0;
  bool held_ = false;  // the caller has the slot before next_in_
};

}  // namespace rondo::inline v0
