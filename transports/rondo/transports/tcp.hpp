#pragma once

#include <rondo/detail/announce.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/group.hpp>
#include <rondo/pollable.hpp>
#include <rondo/transport.hpp>
#include <rondo/transports/tcp/mesh.hpp>
#include <rondo/transports/tcp/stream.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <poll.h>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// Ranks connected by TCP, each with each. Models transport; every call is made by the thread that uses it, and there
/// are no others behind it.
///
/// Bytes that write() has accepted reach the peer even if this object is destroyed right after; the destructor takes at
/// most a tenth of a second. In a forked child an inherited object can only be destroyed, which the parent does not
/// notice.
class tcp {
 public:
  static constexpr std::string_view name = "tcp";

  /// Connects all ranks of the group with each other. Every rank must call; all of them succeed or throw connect_error,
  /// which names a pair that could not be joined and the addresses that were tried. Blocks until `deadline` at the
  /// most.
  ///
  /// Listens only while connecting, and drops whoever cannot prove to have been told the secret through the group. What
  /// travels later is neither encrypted nor authenticated.
  static tcp connect(std::shared_ptr<group> const& ranks, tcp_options const& options = {},
                     group::clock::time_point deadline = group::clock::now() + std::chrono::minutes(5)) {
    detail::tcp_mesh mesh(*ranks, options);
    auto const wirings = publish(*ranks, mesh, deadline);
    auto const now = group::clock::now();
    auto const outcomes = ranks->exchange(mesh.connect(wirings, now + (deadline - now) / 4 * 3), deadline);
    // Of a pair the higher rank dials, and knows more.
    for (rank_t q = ranks->size() - 1; q >= 0; --q)
      if (auto const& problem = outcomes[index(q)]; !problem.empty()) throw connect_error(problem, q);
    tcp x(ranks->rank(), options);
    for (rank_t q = 0; q < ranks->size(); ++q) x.streams_.emplace_back(q, mesh.take(q), options.stripe);
    return x;
  }

  tcp(tcp&&) noexcept = default;
  tcp& operator=(tcp&& other) noexcept {
    close();
    rank_ = other.rank_;
    options_ = std::move(other.options_);
    streams_ = std::move(other.streams_);
    polled_ = std::move(other.polled_);
    owner_ = other.owner_;
    return *this;
  }
  ~tcp() { close(); }

  /// connect() with the options of this one.
  tcp reconnect(std::shared_ptr<group> const& ranks, group::clock::time_point deadline) const {
    return connect(ranks, options_, deadline);
  }

  rank_t rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(streams_.size()); }

  std::size_t write(rank_t peer, std::span<std::byte const> bytes, bool more) {
    return streams_[index(peer)].write(bytes, more);
  }
  std::span<std::byte const> readable(rank_t peer, std::size_t need) { return streams_[index(peer)].readable(need); }
  void consume(rank_t peer, std::size_t n) noexcept { streams_[index(peer)].consume(n); }
  std::size_t read(rank_t peer, std::span<std::byte> bytes) { return streams_[index(peer)].read(bytes); }

  /// A system call costs as much as copying some KiB.
  static constexpr std::size_t piece_bytes() noexcept { return std::size_t{512} << 10; }

  /// Also sends what writes with `more` have held back. A stream that made one wait return early is not waited for
  /// again until it has been tried.
  void wait(std::chrono::nanoseconds patience) {
    polled_.clear();
    watch(polled_);
    detail::poll_until_ready(polled_, patience);
    watched(polled_);
  }

  std::chrono::nanoseconds watch(std::vector<pollfd>& polled) {
    for (auto& s : streams_)
      for (pollfd const& p : s.watch()) polled.push_back(p);
    return detail::any_time;
  }
  void watched(std::span<pollfd const> answers) noexcept {
    for (std::size_t q = 0; q < streams_.size(); ++q) streams_[q].watched(answers.subspan(2 * q).first<2>());
  }

 private:
  tcp(rank_t rank, tcp_options const& options) : rank_(rank), options_(options) {}

  static std::size_t index(rank_t q) noexcept { return static_cast<std::size_t>(q); }

  static std::vector<detail::tcp_wiring> publish(group& ranks, detail::tcp_mesh& mesh,
                                                 group::clock::time_point deadline) {
    std::vector<detail::tcp_wiring> wirings;
    auto const texts = detail::announce(
        ranks, "use TCP", [&] { return mesh.listen().encode(); }, deadline);
    for (rank_t q = 0; q < ranks.size(); ++q) {
      auto const& w = wirings.emplace_back(detail::tcp_wiring::decode(texts[index(q)], q));
      if (w.streams != wirings.front().streams || w.stripe != wirings.front().stripe)
        throw connect_error(
            detail::text_of(
                {"rank ", q, " has other tcp_options (streams, stripe) than rank 0; give every rank the same"}),
            q);
    }
    return wirings;
  }

  /// Closing a socket that has, or gets, unread input resets the connection, and a reset throws away what the peer's
  /// kernel has not received yet. So input is dropped until everything sent is acknowledged.
  void close() noexcept {
    if (streams_.empty() || ::getpid() != owner_) return;
    for (auto const& s : streams_)
      for (auto const& lane : s.lanes()) lane.end_output();
    auto const deadline = group::clock::now() + std::chrono::milliseconds(100);
    auto const settled = [](auto const& s) {
      return std::all_of(s.lanes().begin(), s.lanes().end(), [](auto const& lane) { return lane.settled(); });
    };
    while (!std::all_of(streams_.begin(), streams_.end(), settled) && group::clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    streams_.clear();
  }

  rank_t rank_;
  tcp_options options_;
  std::vector<detail::tcp_stream> streams_;
  std::vector<pollfd> polled_;
  ::pid_t owner_ = ::getpid();
};

static_assert(pollable<tcp>);

}  // namespace rondo::inline v0
