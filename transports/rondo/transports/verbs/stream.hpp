#pragma once

#include <rondo/detail/stripe_cursor.hpp>
#include <rondo/error.hpp>
#include <rondo/transports/verbs/lane.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// The two byte streams between this rank and one peer, over one or more queue pairs that take turns.
class verbs_stream {
 public:
  verbs_stream(rank_t peer, std::vector<verbs_lane> lanes, std::size_t stripe)
      : peer_(peer), lanes_(std::move(lanes)), out_(lanes_.size(), stripe), in_(lanes_.size(), stripe) {}

  std::vector<verbs_lane>& lanes() noexcept { return lanes_; }
  std::vector<verbs_lane> const& lanes() const noexcept { return lanes_; }

  /// Throws peer_lost if there is something to write and the peer has gone.
  std::size_t write(std::span<std::byte const> bytes, bool more) {
    if (bytes.empty()) return 0;
    for (auto const& l : lanes_)
      if (l.over()) lost(l);
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      auto const part = bytes.subspan(sent, std::min(bytes.size() - sent, out_.left()));
      // The end of a stripe is never held back: what follows it takes another queue pair.
      bool const hold = more && part.size() < out_.left();
      auto const n = lanes_[out_.lane()].write(part, hold);
      out_.pass(n);
      sent += n;
      if (n < part.size()) break;
      held_back_ = hold;
    }
    return sent;
  }

  /// Sends what writes with `more` have held back.
  void push() {
    if (std::exchange(held_back_, false)) lanes_[out_.lane()].push();
  }

  /// What lies in a slot is shown there; what spans slots, or is more than they hold, is put together first.
  std::span<std::byte const> readable(std::size_t need) {
    if (first_ == last_)
      if (auto const here = front(); here.size() >= need) return here;
    if (last_ - first_ < need) stage(need);
    if (last_ - first_ < need) return {};
    return {staging_.get() + first_, last_ - first_};
  }

  void consume(std::size_t n) {
    if (first_ < last_)
      first_ += n;
    else
      drop(n);
  }

  std::size_t read(std::span<std::byte> into) {
    auto const n = std::min(into.size(), last_ - first_);
    if (n > 0) std::memcpy(into.data(), staging_.get() + first_, n);
    first_ += n;
    return n + pull(into.subspan(n));
  }

  /// Throws peer_lost if no bytes can come any more but those that are there.
  void require_more() const {
    for (auto const& l : lanes_)
      if (l.failed() || (l.left() && &l == &lanes_[in_.lane()])) lost(l);
  }

 private:
  static constexpr std::size_t capacity = std::size_t{64} << 10;  // the largest `need`

  std::span<std::byte const> front() const noexcept {
    if (lanes_.empty()) return {};
    auto const all = lanes_[in_.lane()].front();
    return all.first(std::min(all.size(), in_.left()));
  }

  void drop(std::size_t n) {
    if (n == 0) return;
    lanes_[in_.lane()].drop(n);
    in_.pass(n);
  }

  /// Moves what has come out of the slots.
  std::size_t pull(std::span<std::byte> into) {
    std::size_t done = 0;
    while (done < into.size()) {
      auto const here = front();
      auto const n = std::min(here.size(), into.size() - done);
      if (n == 0) break;
      std::memcpy(into.data() + done, here.data(), n);
      drop(n);
      done += n;
    }
    return done;
  }

  /// Puts together up to `need` bytes, which also frees the slots that they came in.
  void stage(std::size_t need) {
    if (!staging_) staging_ = std::make_unique_for_overwrite<std::byte[]>(capacity);
    if (first_ > 0) std::memmove(staging_.get(), staging_.get() + first_, last_ - first_);
    last_ -= std::exchange(first_, 0);
    last_ += pull({staging_.get() + last_, need - last_});
  }

  [[noreturn]] void lost(verbs_lane const& lane) const {
    throw peer_lost("rank " + std::to_string(peer_) + " has left" +
                        (lane.left() ? ": it has destroyed its transport"
                                     : " or died: its queue pair failed (" + lane.why() + ")") +
                        "; see the output of that rank",
                    peer_);
  }

  rank_t peer_;
  std::vector<verbs_lane> lanes_;
  stripe_cursor out_, in_;
  std::unique_ptr<std::byte[]> staging_;
  std::size_t first_ = 0, last_ = 0;  // what is staged
  bool held_back_ = false;
};

}  // namespace rondo::inline v0::detail
