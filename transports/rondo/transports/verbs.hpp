#pragma once

#include <rondo/detail/announce.hpp>
#include <rondo/group.hpp>
#include <rondo/pollable.hpp>
#include <rondo/transports/verbs/mesh.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <poll.h>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// Ranks connected by InfiniBand or RoCE, each with each, over reliable queue pairs of libibverbs (rdma-core 32 or
/// newer). Models transport; every call is made by the thread that uses it, and there are no others behind it.
///
/// Bytes that write() has accepted reach the peer even if this object is destroyed right after; the destructor takes at
/// most a second, and a fifth of one if no peer answers. A peer that has died is noticed when something is written to
/// it, after about half a second with the default options; until then its group tells. In a forked child an inherited
/// object can only be destroyed, which the parent does not notice.
class verbs {
 public:
  static constexpr std::string_view name = "verbs";

  /// Connects all ranks of the group with each other. Every rank must call; all of them succeed or throw connect_error,
  /// which names a rank that has no usable device, or a pair that could not be joined. Blocks until `deadline` at the
  /// most. What travels is neither encrypted nor authenticated.
  static verbs connect(std::shared_ptr<group> const& ranks, verbs_options const& options = {},
                       group::clock::time_point deadline = group::clock::now() + std::chrono::minutes(5)) {
    detail::verbs_mesh mesh(*ranks, options);
    auto const wirings = publish(*ranks, mesh, deadline);
    auto const outcomes = ranks->exchange(mesh.connect(wirings), deadline);
    for (rank_t q = 0; q < ranks->size(); ++q)
      if (auto const& problem = outcomes[index(q)]; !problem.empty()) throw connect_error(problem, q);
    return verbs(ranks->rank(), options, mesh.take());
  }

  verbs(verbs&&) noexcept = default;
  verbs& operator=(verbs&& other) noexcept {
    close();
    rank_ = other.rank_;
    options_ = std::move(other.options_);
    fabric_ = std::move(other.fabric_);
    owner_ = other.owner_;
    return *this;
  }
  ~verbs() { close(); }

  /// connect() with the options of this one. The queue pairs are new.
  verbs reconnect(std::shared_ptr<group> const& ranks, group::clock::time_point deadline) const {
    return connect(ranks, options_, deadline);
  }

  rank_t rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(fabric_->streams().size()); }

  std::size_t write(rank_t peer, std::span<std::byte const> bytes, bool more) {
    auto& stream = fabric_->streams()[index(peer)];
    auto n = stream.write(bytes, more);
    while (n < bytes.size() && fabric_->progress()) n += stream.write(bytes.subspan(n), more);
    return n;
  }

  std::span<std::byte const> readable(rank_t peer, std::size_t need) {
    auto& stream = fabric_->streams()[index(peer)];
    auto found = stream.readable(need);
    if (found.empty() && fabric_->progress()) found = stream.readable(need);
    if (found.empty()) stream.require_more();
    return found;
  }

  void consume(rank_t peer, std::size_t n) { fabric_->streams()[index(peer)].consume(n); }

  std::size_t read(rank_t peer, std::span<std::byte> bytes) {
    auto& stream = fabric_->streams()[index(peer)];
    auto n = stream.read(bytes);
    if (n < bytes.size() && fabric_->progress()) n += stream.read(bytes.subspan(n));
    if (n == 0 && !bytes.empty()) stream.require_more();
    return n;
  }

  /// A few slots: enough to keep the link busy while the next ones are filled.
  std::size_t piece_bytes() const noexcept { return 4 * options_.slot_bytes; }

  /// Also sends what writes with `more` have held back. Looks at no stream: what one wait has slept for, the next one
  /// does not wait for again.
  void wait(std::chrono::nanoseconds patience) { fabric_->wait(patience); }
  std::chrono::nanoseconds watch(std::vector<pollfd>& polled) { return fabric_->watch(polled); }
  void watched(std::span<pollfd const> answers) { fabric_->watched(answers); }

  verbs_statistics statistics() const noexcept { return fabric_->statistics(); }

 private:
  verbs(rank_t rank, verbs_options const& options, std::unique_ptr<detail::verbs_fabric> fabric)
      : rank_(rank), options_(options), fabric_(std::move(fabric)) {}

  static std::size_t index(rank_t q) noexcept { return static_cast<std::size_t>(q); }

  /// A rank that has no usable device says so instead of leaving the others waiting for it.
  static std::vector<detail::verbs_wiring> publish(group& ranks, detail::verbs_mesh& mesh,
                                                   group::clock::time_point deadline) {
    std::vector<detail::verbs_wiring> wirings;
    auto const texts = detail::announce(
        ranks, "use RDMA", [&] { return mesh.open().encode(); }, deadline);
    for (rank_t q = 0; q < ranks.size(); ++q) {
      auto const& w = wirings.emplace_back(detail::verbs_wiring::decode(texts[index(q)], q, ranks.size()));
      if (!w.same_shape(wirings.front()))
        throw connect_error("rank " + std::to_string(q) + " has other verbs_options (rails, stripe, slots, " +
                                "slot_bytes) than rank 0; give every rank the same",
                            q);
    }
    return wirings;
  }

  void close() noexcept {
    if (!fabric_) return;
    if (::getpid() != owner_) {
      // What belongs to the parent is left alone, to the last page.
      static_cast<void>(fabric_.release());
      return;
    }
    try {
      fabric_->leave();
    } catch (std::exception const&) {}  // memory is short: what is under way is lost
    fabric_.reset();
  }

  rank_t rank_;
  verbs_options options_;
  std::unique_ptr<detail::verbs_fabric> fabric_;
  ::pid_t owner_ = ::getpid();
};

static_assert(pollable<verbs>);

}  // namespace rondo::inline v0
