#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/detail/mirrored_memory.hpp>
#include <rondo/error.hpp>
#include <rondo/group.hpp>
#include <rondo/pollable.hpp>
#include <rondo/transports/ucx/options.hpp>
#include <rondo/transports/ucx/stream.hpp>
#include <rondo/transports/ucx/wiring.hpp>
#include <rondo/transports/ucx/worker.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <poll.h>
#include <span>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// A rank's streams to all others, over one worker.
class ucx_mesh {
 public:
  using clock = group::clock;

  /// Expects whatever the others may send. Throws connect_error, or invalid_argument for options out of range.
  ucx_mesh(rank_t rank, int ranks, ucx_options const& options)
      : rank_(rank), options_(checked(options)), worker_(ranks) {
    auto const each = ucx_stream::bytes(options);
    auto const peers = static_cast<std::size_t>(ranks - 1);
    streams_.resize(static_cast<std::size_t>(ranks));
    if (peers == 0) return;
    memory_ = {map_or_throw(nullptr, peers * each, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), peers * each};
    worker_.adopt({memory_.data(), memory_.size()});
    auto rest = std::span(memory_.data(), memory_.size());
    for (rank_t q = 0; q < ranks; ++q) {
      if (q == rank) continue;
      by_rank(streams_, q) = std::make_unique<ucx_stream>(worker_, rank, q, rest.first(each), options);
      rest = rest.subspan(each);
    }
  }
  ucx_mesh(ucx_mesh const&) = delete;
  ucx_mesh& operator=(ucx_mesh const&) = delete;
  ~ucx_mesh() = default;

  rank_t rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(streams_.size()); }
  ::pid_t owner() const noexcept { return owner_; }

  ucx_wiring wiring() const { return {ucx_release(), options_, ucx_wiring::here(), worker_.address()}; }

  /// Connects with every peer, until `deadline`. Returns what went wrong, or nothing.
  std::string connect(std::vector<ucx_wiring> const& wirings, group const& ranks, clock::time_point deadline) {
    for_each([&](auto& s) { s.connect(by_rank(wirings, s.peer()).address); });
    for (;;) {
      pump();
      ucx_stream const* late = nullptr;
      for (auto const& s : streams_) {
        if (!s || s->heard()) continue;
        late = s.get();
        if (!late->trouble().empty())
          return pair(*late) + " cannot be joined over UCX (" + late->trouble() + ")" + cure;
      }
      if (!late) return {};
      if (ranks.failed()) return ranks.verdict().what;
      if (clock::now() >= deadline)
        return "rank " + std::to_string(late->peer()) + " was not heard over UCX by rank " + std::to_string(rank_) +
               " before the deadline" + cure;
      wait(std::min<std::chrono::nanoseconds>(deadline - clock::now(), std::chrono::milliseconds(50)));
    }
  }

  /// Exchanges through the group while the peers connect to this rank, for which they may need its worker.
  std::vector<std::string> exchange(group& ranks, std::string const& mine, clock::time_point deadline) {
    auto answer = std::async(std::launch::async, [&] { return ranks.exchange(mine, deadline); });
    while (answer.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) pump();
    return answer.get();
  }

  std::size_t write(rank_t peer, std::span<std::byte const> bytes, bool more) {
    if (bytes.empty()) return 0;
    auto& s = stream(peer);
    // A message to a peer that is leaving resets its connection, and with it what it has sent last.
    if (!s.holds()) pump();
    auto accepted = s.write(bytes, more);
    if (accepted == bytes.size()) return accepted;
    pump();
    return accepted + s.write(bytes.subspan(accepted), more);
  }

  std::span<std::byte const> readable(rank_t peer, std::size_t need) {
    auto& s = stream(peer);
    auto found = s.readable(need);
    if (!found.empty()) return found;
    pump();
    found = s.readable(need);
    if (found.empty()) s.expect_more();
    return found;
  }

  void consume(rank_t peer, std::size_t n) noexcept {
    stream(peer).consume(n);
    if (worker_.chores) pump();
  }

  std::size_t read(rank_t peer, std::span<std::byte> into) {
    auto& s = stream(peer);
    auto n = s.read(into);
    if (n == 0 && !into.empty()) {
      pump();
      n = s.read(into);
      if (n == 0) s.expect_more();
    }
    if (worker_.chores) pump();
    return n;
  }

  std::chrono::nanoseconds watch(std::vector<pollfd>& polled) {
    polled.push_back({worker_.events(), POLLIN, 0});
    for_each([](auto& s) { s.push(); });
    do {
      pump();
      if (std::exchange(worker_.news, false)) return std::chrono::nanoseconds(0);
    } while (!worker_.arm());
    return any_time;
  }
  void watched(std::span<pollfd const> answers) noexcept {
    if (answers.front().revents != 0) pump();
  }

  /// Sleeps through what moves no stream.
  void wait(std::chrono::nanoseconds patience) {
    auto const until = clock::now() + std::max(patience, std::chrono::nanoseconds(0));
    do {
      polled_.clear();
      auto const limit = watch(polled_);
      if (limit.count() == 0) return;
      poll_until_ready(polled_, std::min<std::chrono::nanoseconds>(limit, until - clock::now()));
      watched(polled_);
    } while (!std::exchange(worker_.news, false) && clock::now() < until);
  }

  /// Ends all connections. Peers that look within a tenth of a second get all that was accepted, and learn that this
  /// rank leaves. Returns false if UCX cannot let go of some: then the mesh must not be destroyed.
  bool close() noexcept {
    std::vector<ucs_status_ptr_t> left;
    for_each([&](auto& s) {
      s.leave();
      left.push_back(s.flush());
    });
    await_peers(left);
    for_each([&](auto& s) { left.push_back(s.close()); });
    bool const done = worker_.finish(left, clock::now() + closing);
    for_each([](auto& s) { s.cancel(); });
    return done;
  }

 private:
  static constexpr char cure[] = ": see that UCX_NET_DEVICES names networks that reach each other, or use tcp";
  static constexpr std::chrono::milliseconds silence{100}, longest_farewell{300}, closing{500};

  static ucx_options const& checked(ucx_options const& o) {
    if (o.slot_bytes < 64 || o.slot_bytes > (std::size_t{16} << 20) || o.slot_bytes % 64 != 0)
      throw invalid_argument("slot_bytes of ucx_options is " + std::to_string(o.slot_bytes) +
                             ": give a multiple of 64, 64 to 16777216");
    if (o.window < 2 || o.window > 1024)
      throw invalid_argument("window of ucx_options is " + std::to_string(o.window) + ": give 2 to 1024");
    return o;
  }

  ucx_stream& stream(rank_t peer) const noexcept { return *by_rank(streams_, peer); }

  template <class F>
  void for_each(F&& f) const {
    for (auto const& s : streams_)
      if (s) f(*s);
  }

  std::string pair(ucx_stream const& s) const {
    auto const [low, high] = std::minmax(rank_, s.peer());
    return "ranks " + std::to_string(low) + " and " + std::to_string(high);
  }

  /// Until what was sent needs this rank no more and the peers have it or give no sign. A flush alone does not tell:
  /// over TCP it waits for the peer, though the kernel has the bytes.
  void await_peers(std::vector<ucs_status_ptr_t>& flushes) noexcept {
    auto const end = clock::now() + longest_farewell;
    auto const settled = [](auto const& s) { return !s || s->settled(); };
    std::uint64_t seen = 0;
    for (auto quiet = clock::now() + silence;;) {
      auto const now = clock::now();
      std::uint64_t signs = flushes.size();
      for_each([&](auto& s) { signs += s.signs(); });
      if (std::exchange(seen, signs) != signs) quiet = now + silence;
      bool const flushed = worker_.finish(flushes, now);
      bool const done = flushed && (now >= quiet || std::all_of(streams_.begin(), streams_.end(), settled));
      if (done || now >= end) return;
      try {
        wait(std::chrono::milliseconds(1));
      } catch (error const&) {}  // then it spins
    }
  }

  /// Takes in all that has come, then answers it.
  void pump() noexcept {
    worker_.progress();
    if (std::exchange(worker_.chores, false)) for_each([](auto& s) { s.do_chores(); });
  }

  rank_t rank_;
  ucx_options options_;
  ::pid_t owner_ = ::getpid();
  // The worker goes first: until then UCX may use what follows it.
  mapping memory_;
  std::vector<std::unique_ptr<ucx_stream>> streams_;
  std::vector<pollfd> polled_;
  ucx_worker worker_;
};

/// Closes and deletes a mesh in the process that made it. In a forked child it is left alone: its connections are the
/// parent's.
struct ucx_mesh_deleter {
  void operator()(ucx_mesh* mesh) const noexcept {
    if (::getpid() == mesh->owner() && mesh->close()) delete mesh;
  }
};

}  // namespace rondo::inline v0::detail
