#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/detail/shared_file.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>
#include <rondo/memory.hpp>
#include <rondo/transports/cuda_ipc/runtime.hpp>
#include <rondo/transports/shm.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// How the memory that a rank lends is divided: a ring for each peer that writes, then the arena.
struct ring_layout {
  int ranks;
  std::size_t ring, arena;  ///< bytes

  /// Throws invalid_argument for rings that cannot be.
  void check() const {
    if (ring == 0 || ring % page_bytes != 0)
      throw invalid_argument(
          text_of({"a ring of ", ring, " bytes cannot be: give ring_bytes a multiple of ", page_bytes}));
  }

  std::size_t at(rank_t owner, rank_t writer) const noexcept {
    return static_cast<std::size_t>(writer < owner ? writer : writer - 1) * ring;
  }
  std::size_t arena_at() const noexcept { return static_cast<std::size_t>(ranks - 1) * ring; }
  std::size_t bytes() const noexcept { return std::max<std::size_t>(arena_at() + arena, 1); }
};

/// Byte streams whose bytes come from memory of the host or of a device, and go to either.
///
/// What the host writes goes through shared memory of the host, untouched. What a device writes goes into a ring on the
/// device of the reader, by one copy from device to device; a segment, posted before anything that the host writes
/// later, tells the reader where in the stream it belongs. Only a reader that wants to see such bytes, with readable(),
/// has them copied to the host.
template <device_runtime R>
class device_streams {
 public:
  /// `memory` is what the ranks lend, by rank.
  device_streams(shm host, R runtime, typename R::stream stream, ring_layout rings, std::vector<std::byte*> memory)
      : host_(std::move(host)), runtime_(std::move(runtime)), stream_(stream), rings_(rings),
        memory_(std::move(memory)), outgoing_(memory_.size()), incoming_(memory_.size()) {}

  shm& host() noexcept { return host_; }
  shm const& host() const noexcept { return host_; }

  std::size_t write(rank_t peer, std::span<std::byte const> bytes) {
    outgoing& out = by_rank(outgoing_, peer);
    std::size_t n = 0;
    if (!runtime_.on_device(bytes.data())) {
      n = host_.write(peer, bytes, false);  // held back, it might wait for bytes that take the other way
    } else {
      auto const& credit = host_.mail(host_.rank(), peer).flags;
      if (out.posted - credit[taken].load(std::memory_order_acquire) == segments_each) return 0;
      std::size_t const place = out.filled % rings_.ring;
      std::size_t const room = rings_.ring - (out.filled - credit[emptied].load(std::memory_order_acquire));
      n = std::min({bytes.size(), room, rings_.ring - place});
      if (n == 0) return 0;
      std::byte* const ring = by_rank(memory_, peer) + rings_.at(peer, host_.rank());
      copy(ring + place, bytes.data(), n);
      segments_of(peer, host_.rank())[out.posted % segments_each] = {out.position, n};
      out.filled += n;
      host_.mail(peer, host_.rank()).flags[posted].store(++out.posted, std::memory_order_release);
      host_.notify(peer);
    }
    out.position += n;
    return n;
  }

  std::span<std::byte const> readable(rank_t peer, std::size_t need) {
    incoming& in = by_rank(incoming_, peer);
    if (in.seen.empty()) {
      auto const there = host_.readable(peer, need);
      auto const next = next_segment(peer);  // looked for afterwards: see write()
      std::size_t const limit = next ? before(*next, in) : there.size();
      if (!next || limit >= need) return there.first(std::min(there.size(), limit));
    }
    in.require_window(runtime_);
    while (in.seen.size() < need) {
      std::size_t const n = move(peer, in.room());
      if (n == 0) return {};
      in.seen = {in.seen.data(), in.seen.size() + n};
    }
    return in.seen;
  }

  void consume(rank_t peer, std::size_t n) {
    incoming& in = by_rank(incoming_, peer);
    if (!in.seen.empty()) {
      in.seen = in.seen.subspan(n);
    } else {
      host_.consume(peer, n);
      in.position += n;
    }
  }

  std::size_t read(rank_t peer, std::span<std::byte> into) {
    incoming& in = by_rank(incoming_, peer);
    std::size_t done = std::min(in.seen.size(), into.size());
    if (done != 0) {
      copy(into.data(), in.seen.data(), done);
      in.seen = in.seen.subspan(done);
    }
    while (done < into.size()) {
      std::size_t const n = move(peer, into.subspan(done));
      if (n == 0) break;
      done += n;
    }
    return done;
  }

 private:
  /// A run of bytes that lies in the ring, and its place in the stream.
  struct segment {
    std::uint64_t position, bytes;
  };
  static constexpr std::size_t segments_each = 256;  // fit on the board for as many ranks as a host has

  // Flags of a mailbox. The first goes from writer to reader, the others back.
  static constexpr std::size_t posted = 0, emptied = 1, taken = 2;

  struct outgoing {
    std::uint64_t position = 0;  // bytes of the stream
    std::uint64_t posted = 0;    // segments
    std::uint64_t filled = 0;    // bytes of them
  };

  struct incoming {
    static constexpr std::size_t shown = 65536;  // the most that readable() is asked for

    std::uint64_t position = 0;
    std::uint64_t posted = 0, taken = 0, emptied = 0;
    std::shared_ptr<std::byte> window;  // pinned, for bytes that readable() has brought to the host
    std::span<std::byte> seen{};        // those that were not consumed

    void require_window(R const& runtime) {
      if (!window) window = {runtime.allocate_pinned(2 * shown), [runtime](std::byte* p) { runtime.free_pinned(p); }};
      if (seen.empty()) seen = {window.get(), 0};
    }

    /// Where to put what comes next.
    std::span<std::byte> room() noexcept {
      if (seen.data() + seen.size() >= window.get() + shown) {
        std::memmove(window.get(), seen.data(), seen.size());
        seen = {window.get(), seen.size()};
      }
      return {seen.data() + seen.size(), shown};
    }
  };

  /// Bytes of the stream before a segment that were not taken out yet.
  static std::size_t before(segment const& s, incoming const& in) noexcept {
    return in.position < s.position ? static_cast<std::size_t>(s.position - in.position) : 0;
  }

  segment* segments_of(rank_t owner, rank_t writer) const noexcept {
    return reinterpret_cast<segment*>(host_.board(owner).data()) + static_cast<std::size_t>(writer) * segments_each;
  }

  /// The first segment that was not taken out whole.
  std::optional<segment> next_segment(rank_t peer) {
    incoming& in = by_rank(incoming_, peer);
    if (in.taken == in.posted) in.posted = host_.mail(host_.rank(), peer).flags[posted].load(std::memory_order_acquire);
    if (in.taken == in.posted) return std::nullopt;
    return segments_of(host_.rank(), peer)[in.taken % segments_each];
  }

  /// Takes bytes out of the stream, all from one place; returns how many.
  std::size_t move(rank_t peer, std::span<std::byte> into) {
    incoming& in = by_rank(incoming_, peer);
    auto const there = host_.readable(peer, 1);
    auto const next = next_segment(peer);
    if (next && before(*next, in) == 0) return move_segment(peer, *next, into);
    std::size_t n = std::min(there.size(), into.size());
    if (next) n = std::min(n, before(*next, in));
    if (n == 0) return 0;
    if (runtime_.on_device(into.data())) {
      copy(into.data(), there.data(), n);
      host_.consume(peer, n);
    } else {
      n = host_.read(peer, into.first(n));
    }
    in.position += n;
    return n;
  }

  std::size_t move_segment(rank_t peer, segment const& s, std::span<std::byte> into) {
    incoming& in = by_rank(incoming_, peer);
    std::size_t const n = std::min<std::size_t>(into.size(), s.position + s.bytes - in.position);
    if (n == 0) return 0;
    std::byte const* const ring = by_rank(memory_, host_.rank()) + rings_.at(host_.rank(), peer);
    copy(into.data(), ring + in.emptied % rings_.ring, n);
    in.position += n;
    in.emptied += n;
    auto& credit = host_.mail(peer, host_.rank()).flags;
    credit[emptied].store(in.emptied, std::memory_order_release);
    if (in.position == s.position + s.bytes) credit[taken].store(++in.taken, std::memory_order_release);
    host_.notify(peer);
    return n;
  }

  /// The accepted bytes may be overwritten at once, so this waits for the device; never for a peer.
  void copy(std::byte* to, std::byte const* from, std::size_t n) {
    runtime_.copy(to, from, n, stream_);
    runtime_.wait(stream_);
  }

  shm host_;
  R runtime_;
  typename R::stream stream_;
  ring_layout rings_;
  std::vector<std::byte*> memory_;
  std::vector<outgoing> outgoing_;
  std::vector<incoming> incoming_;
};

}  // namespace rondo::inline v0::detail
