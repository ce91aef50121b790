#pragma once

#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>
#include <rondo/group.hpp>
#include <rondo/pollable.hpp>
#include <rondo/transport.hpp>
#include <rondo/transports/cuda_ipc/device_streams.hpp>
#include <rondo/transports/cuda_ipc/lent_memory.hpp>
#include <rondo/transports/cuda_ipc/options.hpp>
#include <rondo/transports/cuda_ipc/probe.hpp>
#include <rondo/transports/cuda_ipc/roster.hpp>
#include <rondo/transports/cuda_ipc/runtime.hpp>
#include <rondo/transports/cuda_ipc/shared_buffers.hpp>
#include <rondo/transports/shm.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <poll.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// Byte streams between the devices of one host, by copies from device to device, and memory for kernels. Models
/// transport; R says how devices are used.
///
/// The bytes of a call may lie in memory of the host or of a device, on each side as it likes; readable() always shows
/// memory of the host. A call copies on the stream of the options and returns when the copy is done: it waits for what
/// was enqueued there before, never for a peer. What the host writes goes through shared memory as in shm.
template <device_runtime R>
class basic_cuda_ipc {
 public:
  static constexpr std::string_view name = "cuda_ipc";
  static constexpr bool within_a_host = true;
  using options_type = cuda_ipc_options<R>;

  /// Connects the ranks of a group, processes or threads, each with the device of its options; several may have the
  /// same. Every rank must call; blocks until all have. Devices are matched by their UUIDs, and that they reach each
  /// other is tried with data, in both directions: all ranks throw connect_error, which names one and says why, where a
  /// byte goes wrong or the ranks cannot open each other's memory.
  static basic_cuda_ipc connect(std::shared_ptr<group> const& ranks, options_type const& options = {},
                                group::clock::time_point deadline = group::clock::now() + std::chrono::minutes(5)) {
    detail::ring_layout const rings{ranks->size(), options.ring_bytes, options.arena_bytes};
    rings.check();
    detail::device_roster roster(*ranks, options, deadline);
    auto host = shm::connect(ranks, deadline);
    auto memory = lend(*ranks, roster, options, rings, deadline);
    return basic_cuda_ipc(options, std::move(roster), rings, std::move(host), std::move(memory));
  }

  /// connect() with the options of this one.
  basic_cuda_ipc reconnect(std::shared_ptr<group> const& ranks, group::clock::time_point deadline) const {
    return connect(ranks, options_, deadline);
  }

  /// The ranks of this host. Every rank must call; blocks until all have.
  static std::vector<bool> reach(group& ranks, group::clock::time_point deadline) {
    return shm::reach(ranks, deadline);
  }

  basic_cuda_ipc(basic_cuda_ipc&&) noexcept = default;
  basic_cuda_ipc& operator=(basic_cuda_ipc&&) = delete;

  /// Where peers opened memory of this rank by handles, waits until they have closed it, at most for the options'
  /// farewell.
  ~basic_cuda_ipc() {
    if (memory_) leave();
  }

  rank_t rank() const noexcept { return streams_.host().rank(); }
  int size() const noexcept { return streams_.host().size(); }

  std::size_t write(rank_t peer, std::span<std::byte const> bytes, bool) { return streams_.write(peer, bytes); }
  std::span<std::byte const> readable(rank_t peer, std::size_t need) { return streams_.readable(peer, need); }
  void consume(rank_t peer, std::size_t n) { streams_.consume(peer, n); }
  std::size_t read(rank_t peer, std::span<std::byte> bytes) { return streams_.read(peer, bytes); }

  void wait(std::chrono::nanoseconds patience) { streams_.host().wait(patience); }
  std::chrono::nanoseconds watch(std::vector<pollfd>& polled) { return streams_.host().watch(polled); }
  void watched(std::span<pollfd const> answers) { streams_.host().watched(answers); }

  bool takes_device_memory() const noexcept { return true; }

  /// A copy between devices costs microseconds before its first byte moves.
  std::size_t piece_bytes() const noexcept { return std::min<std::size_t>(options_.ring_bytes, std::size_t{1} << 20); }

  /// What connects this rank with a peer: "cuda_ipc by files", by handles, or by pointers within a process.
  std::string explain(rank_t) const { return detail::text_of({name, " by ", memory_->way()}); }

  /// Memory of a rank's device, as this rank's device addresses it, for kernels: options.arena_bytes of it, aligned to
  /// 256 bytes, zero before any rank could see it.
  std::span<std::byte> arena(rank_t owner) const noexcept {
    return {memory_->of(owner) + rings_.arena_at(), rings_.arena};
  }

  /// Lets kernels of all ranks address a buffer of each: says where every rank's lies, as this rank's device addresses
  /// it. Every rank of the group that was connected must call; blocks until all have. A buffer may be any part of an
  /// allocation of runtime.allocate(), or of cudaMalloc; null where a rank has none. Allocations stay open for the next
  /// call, until they are withdrawn: that must come before they are freed.
  std::vector<std::byte*> share(group& ranks, std::byte* buffer, group::clock::time_point deadline) {
    return buffers_.share(ranks, roster_, buffer, deadline);
  }
  /// Lets everybody close the allocation that the buffer of each rank lies in; null: none. Every rank must call; when
  /// it returns the allocations may be freed.
  void withdraw(group& ranks, std::byte const* buffer, group::clock::time_point deadline) {
    buffers_.withdraw(ranks, buffer, deadline);
  }

  /// The device of this rank, as this process numbers it.
  int device() const noexcept { return roster_.device(); }
  options_type const& options() const noexcept { return options_; }

 private:
  using lent_memory = detail::lent_memory<R>;

  basic_cuda_ipc(options_type const& options, detail::device_roster roster, detail::ring_layout rings, shm host,
                 std::unique_ptr<lent_memory> memory)
      : options_(options), roster_(std::move(roster)), rings_(rings), memory_(std::move(memory)),
        buffers_(options.runtime, roster_.device()),
        streams_(std::move(host), options.runtime, options.stream, rings, places_of(*memory_, rings.ranks)) {}

  /// By the first way that works for all ranks.
  static std::unique_ptr<lent_memory> lend(group& ranks, detail::device_roster const& roster,
                                           options_type const& options, detail::ring_layout const& rings,
                                           group::clock::time_point deadline) {
    auto const ways = roster.ways(options.sharing);
    for (auto const way : ways) {
      std::unique_ptr<lent_memory> memory;
      try {
        memory = std::make_unique<lent_memory>(ranks, roster, options, way, rings.bytes(), deadline);
        detail::probe_peer_access(ranks, options.runtime, *memory, rings, options.stream, deadline);
        return memory;
      } catch (connect_error const&) {
        if (memory) memory->close_together(ranks, deadline);
        if (way == ways.back() || ranks.failed() || group::clock::now() > deadline) throw;
      }
    }
    return nullptr;  // there is always a way to try
  }

  static std::vector<std::byte*> places_of(lent_memory const& memory, int ranks) {
    std::vector<std::byte*> places;
    for (rank_t q = 0; q < ranks; ++q) places.push_back(memory.of(q));
    return places;
  }

  void leave() noexcept {
    memory_->close();
    buffers_.close();
    if (!memory_->ends_together() && !buffers_.used()) return;
    auto const closed = [this](rank_t owner, rank_t writer) -> auto& {
      return streams_.host().mail(owner, writer).letters[0].number;  // nothing else is sent by letter here
    };
    auto const each_other = [this](auto const& f) {
      for (rank_t q = 0; q < size(); ++q)
        if (q != rank()) f(q);
    };
    each_other([&](rank_t q) {
      closed(q, rank()).store(1, std::memory_order_release);
      streams_.host().notify(q);
    });
    auto const all_have_closed = [&] {
      bool all = true;
      each_other([&](rank_t q) { all = all && closed(rank(), q).load(std::memory_order_acquire) != 0; });
      return all;
    };
    auto const end = group::clock::now() + options_.farewell;
    while (!all_have_closed()) {
      auto const left = end - group::clock::now();
      if (left <= left.zero()) {
        if (memory_->ends_together()) memory_->abandon();
        return;
      }
      wait(std::min<std::chrono::nanoseconds>(left, std::chrono::milliseconds(50)));
    }
  }

  options_type options_;
  detail::device_roster roster_;
  detail::ring_layout rings_;
  std::unique_ptr<lent_memory> memory_;
  detail::shared_buffers<R> buffers_;
  detail::device_streams<R> streams_;
};

}  // namespace rondo::inline v0
