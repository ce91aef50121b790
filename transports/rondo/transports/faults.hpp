#pragma once

#include <rondo/error.hpp>
#include <rondo/transport.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// A transport that moves only 1 … `most` bytes at a call, the same ones for the same seed: for tests of code that must
/// cope with any prefix.
template <transport X>
class trickling {
 public:
  trickling(X x, std::size_t most, std::uint64_t seed) : x_(std::move(x)), random_(seed), size_(1, most) {}

  std::string_view name() const noexcept { return transport_name(x_); }
  rank_t rank() const noexcept { return x_.rank(); }
  int size() const noexcept { return x_.size(); }

  std::size_t write(rank_t peer, std::span<std::byte const> bytes, bool more) {
    auto const part = bytes.first(some(bytes.size(), 0));
    return x_.write(peer, part, more || part.size() < bytes.size());
  }
  /// Shows up to `most` bytes more than are needed.
  std::span<std::byte const> readable(rank_t peer, std::size_t need) {
    auto const all = x_.readable(peer, need);
    return all.first(some(all.size(), need - 1));
  }
  void consume(rank_t peer, std::size_t n) { x_.consume(peer, n); }
  std::size_t read(rank_t peer, std::span<std::byte> bytes) {
    return x_.read(peer, bytes.first(some(bytes.size(), 0)));
  }
  /// Does not sleep on what was held back: no peer would wake it.
  void wait(std::chrono::nanoseconds patience) {
    x_.wait(std::exchange(held_back_, false) ? patience.zero() : patience);
  }

 private:
  /// How many of `all` bytes to move: up to `most` more than `sure`.
  std::size_t some(std::size_t all, std::size_t sure) {
    std::size_t const n = std::min(all, sure + size_(random_));
    held_back_ = held_back_ || n < all;
    return n;
  }

  X x_;
  std::mt19937_64 random_;
  std::uniform_int_distribution<std::size_t> size_;
  bool held_back_ = false;
};

/// A transport that shows bytes only some time after they have arrived: for tests of code that must not rely on speed.
template <transport X>
class delayed {
 public:
  using clock = std::chrono::steady_clock;

  delayed(X x, std::chrono::nanoseconds delay)
      : x_(std::move(x)), delay_(delay), arrivals_(static_cast<std::size_t>(x_.size())) {}

  std::string_view name() const noexcept { return transport_name(x_); }
  rank_t rank() const noexcept { return x_.rank(); }
  int size() const noexcept { return x_.size(); }

  std::size_t write(rank_t peer, std::span<std::byte const> bytes, bool more) { return x_.write(peer, bytes, more); }
  std::span<std::byte const> readable(rank_t peer, std::size_t need) {
    auto const all = x_.readable(peer, need);
    auto const ripe = all.first(look(peer, all.size()));
    return ripe.size() < need ? ripe.first(0) : ripe;
  }
  void consume(rank_t peer, std::size_t n) {
    x_.consume(peer, n);
    of(peer).consumed += n;
  }
  std::size_t read(rank_t peer, std::span<std::byte> bytes) {
    if (bytes.empty()) return 0;
    auto const ripe = look(peer, x_.readable(peer, 1).size());
    auto const n = x_.read(peer, bytes.first(std::min(bytes.size(), ripe)));
    of(peer).consumed += n;
    return n;
  }
  void wait(std::chrono::nanoseconds patience) {
    for (auto const& a : arrivals_)
      if (!a.unripe.empty())
        patience = std::min<std::chrono::nanoseconds>(patience, a.unripe.front().when - clock::now());
    x_.wait(std::max(patience, std::chrono::nanoseconds(0)));
  }

 private:
  /// The stream up to byte number `end` may be shown from `when` on.
  struct arrival {
    std::uint64_t end;
    clock::time_point when;
  };
  struct incoming {
    std::uint64_t consumed = 0, seen = 0, ripe = 0;
    std::deque<arrival> unripe;
  };

  incoming& of(rank_t peer) noexcept { return arrivals_[static_cast<std::size_t>(peer)]; }

  /// Notes that so many bytes are there; returns how many of them may be shown.
  std::size_t look(rank_t peer, std::size_t there) {
    auto& a = of(peer);
    auto const now = clock::now();
    if (a.consumed + there > a.seen) a.unripe.push_back({a.seen = a.consumed + there, now + delay_});
    for (; !a.unripe.empty() && a.unripe.front().when <= now; a.unripe.pop_front()) a.ripe = a.unripe.front().end;
    return std::min<std::size_t>(there, a.ripe - a.consumed);
  }

  X x_;
  std::chrono::nanoseconds delay_;
  std::vector<incoming> arrivals_;
};

/// A transport that loses one peer as soon as so many bytes have been exchanged with it: for tests of what follows.
template <transport X>
class cut {
 public:
  cut(X x, rank_t peer, std::size_t bytes) : x_(std::move(x)), peer_(peer), left_(bytes) {}

  std::string_view name() const noexcept { return transport_name(x_); }
  rank_t rank() const noexcept { return x_.rank(); }
  int size() const noexcept { return x_.size(); }

  std::size_t write(rank_t peer, std::span<std::byte const> bytes, bool more) {
    return count(peer, x_.write(peer, bytes.first(limit(peer, bytes.size())), more));
  }
  std::span<std::byte const> readable(rank_t peer, std::size_t need) {
    limit(peer, need);
    return x_.readable(peer, need);
  }
  void consume(rank_t peer, std::size_t n) {
    x_.consume(peer, n);
    count(peer, std::min(n, limit_of(peer)));
  }
  std::size_t read(rank_t peer, std::span<std::byte> bytes) {
    return count(peer, x_.read(peer, bytes.first(limit(peer, bytes.size()))));
  }
  void wait(std::chrono::nanoseconds patience) { x_.wait(patience); }

 private:
  std::size_t limit_of(rank_t peer) const noexcept { return peer == peer_ ? left_ : ~std::size_t{0}; }

  std::size_t limit(rank_t peer, std::size_t n) const {
    if (limit_of(peer) > 0) return std::min(n, limit_of(peer));
    throw peer_lost("rank " + std::to_string(peer) + " was cut off, as this test demands", peer);
  }

  std::size_t count(rank_t peer, std::size_t n) noexcept {
    if (peer == peer_) left_ -= n;
    return n;
  }

  X x_;
  rank_t peer_;
  std::size_t left_;
};

}  // namespace rondo::inline v0
