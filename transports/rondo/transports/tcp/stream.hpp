#pragma once

#include <rondo/detail/stripe_cursor.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>
#include <rondo/transports/tcp/socket.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <poll.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// The two byte streams between this rank and one peer, over one or more connections that take turns.
class tcp_stream {
 public:
  tcp_stream(rank_t peer, std::vector<tcp_socket> lanes, std::size_t stripe)
      : peer_(peer), lanes_(std::move(lanes)), out_(lanes_.size(), stripe), in_(lanes_.size(), stripe) {}

  std::size_t write(std::span<std::byte const> bytes, bool more) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      auto const part = bytes.subspan(sent, std::min(bytes.size() - sent, out_.left()));
      // The end of a stripe is never held back: what follows it takes another connection.
      bool const hold = more && part.size() < out_.left();
      auto const n = lane(out_).send(part, hold);
      if (n < 0 && !not_now(errno)) lost(errno);
      auto const accepted = n > 0 ? static_cast<std::size_t>(n) : 0;
      out_.pass(accepted);
      sent += accepted;
      output_full_ = accepted < part.size();
      if (output_full_) break;
      held_back_ = hold;
    }
    return sent;
  }

  std::span<std::byte const> readable(std::size_t need) {
    if (last_ - first_ < need) stage();
    if (last_ - first_ >= need) return {staging_.get() + first_, last_ - first_};
    if (ended_) lost(why_);
    return {};
  }

  void consume(std::size_t n) noexcept {
    first_ += n;
    if (first_ == last_) first_ = last_ = 0;
  }

  std::size_t read(std::span<std::byte> into) {
    std::size_t done = unstage(into);
    if (done == into.size()) return done;
    auto const rest = into.subspan(done);
    if (rest.size() < direct) {
      stage();
      done += unstage(rest);
    } else {
      done += receive(rest);
    }
    if (done == 0 && ended_) lost(why_);
    return done;
  }

  /// What wait() polls for: input where the last look found too little, room where the last write was cut short.
  ///
  /// A direction that has been reported is not polled again before it has been tried again; else bytes that the caller
  /// does not want yet would keep it awake.
  std::array<pollfd, 2> watch() noexcept {
    if (std::exchange(held_back_, false)) lane(out_).push();
    bool const input = input_empty_ && !ended_ && !lanes_.empty();
    return {
        {{input ? lane(in_).descriptor() : -1, POLLIN, 0}, {output_full_ ? lane(out_).descriptor() : -1, POLLOUT, 0}}};
  }
  void watched(std::span<pollfd const, 2> answer) noexcept {
    if (answer[0].revents != 0) input_empty_ = false;
    if (answer[1].revents != 0) output_full_ = false;
  }

  std::vector<tcp_socket> const& lanes() const noexcept { return lanes_; }

 private:
  // More than the largest `need`; what is folded before more is taken in, so still in the cache.
  static constexpr std::size_t capacity = std::size_t{256} << 10;
  // Shorter reads go through the staging buffer: fewer calls.
  static constexpr std::size_t direct = std::size_t{4} << 10;

  tcp_socket const& lane(stripe_cursor const& c) const noexcept { return lanes_[c.lane()]; }

  std::size_t receive(std::span<std::byte> into) noexcept {
    std::size_t received = 0;
    while (received < into.size() && !ended_) {
      auto const part = into.subspan(received, std::min(into.size() - received, in_.left()));
      auto const n = lane(in_).receive(part);
      if (n == 0 || (n < 0 && !not_now(errno))) {
        ended_ = true;
        why_ = n == 0 ? 0 : errno;
        break;
      }
      auto const arrived = n > 0 ? static_cast<std::size_t>(n) : 0;
      in_.pass(arrived);
      received += arrived;
      input_empty_ = arrived < part.size();
      if (input_empty_) break;
    }
    return received;
  }

  /// Takes in what has arrived.
  void stage() {
    if (!staging_) staging_ = std::make_unique_for_overwrite<std::byte[]>(capacity);
    if (first_ > 0) std::memmove(staging_.get(), staging_.get() + first_, last_ - first_);
    last_ -= std::exchange(first_, 0);
    last_ += receive({staging_.get() + last_, capacity - last_});
  }

  std::size_t unstage(std::span<std::byte> into) noexcept {
    auto const n = std::min(into.size(), last_ - first_);
    if (n == 0) return 0;
    std::memcpy(into.data(), staging_.get() + first_, n);
    consume(n);
    return n;
  }

  [[noreturn]] void lost(int code) const {
    throw peer_lost(text_of({"rank ", peer_, " has left or died: its TCP connection ",
                             code == 0 ? "was closed" : text_of({"failed (", std::strerror(code), ")"}),
                             "; see the output of that rank"}),
                    peer_);
  }

  rank_t peer_;
  std::vector<tcp_socket> lanes_;
  stripe_cursor out_, in_;
  std::unique_ptr<std::byte[]> staging_;
  std::size_t first_ = 0, last_ = 0;  // what is staged
  bool input_empty_ = true;
  bool output_full_ = false;
  bool held_back_ = false;
  bool ended_ = false;
  int why_ = 0;
};

}  // namespace rondo::inline v0::detail
