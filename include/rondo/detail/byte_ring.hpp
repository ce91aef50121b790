#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace rondo::inline v0::detail {

/// Distance that keeps two variables from sharing a cache line, or a pair of lines that is prefetched together.
inline constexpr std::size_t line_pair = 128;

/// The shared part of a single-producer single-consumer ring of bytes: two counters that only grow, each with one
/// writer.
struct ring_counters {
  alignas(line_pair) std::atomic<std::uint64_t> written{0};
  alignas(line_pair) std::atomic<std::uint64_t> consumed{0};
};

/// Bytes that are copied between two publications: short enough for the reader to follow the writer within its caches.
inline constexpr std::size_t publish_bytes = std::size_t{16} << 10;

/// The writing end. `data` is mapped twice in a row (see map_mirrored), so that every run of bytes is contiguous.
class ring_writer {
 public:
  ring_writer() = default;
  ring_writer(ring_counters& shared, std::byte* data, std::size_t capacity) noexcept
      : shared_(&shared), data_(data), capacity_(capacity) {}

  /// Copies a prefix of `bytes` into the ring and returns its length. `more` leaves it unpublished until the next
  /// write.
  std::size_t write(std::span<std::byte const> bytes, bool more) noexcept {
    if (capacity_ - (written_ - consumed_) < bytes.size())
      consumed_ = shared_->consumed.load(std::memory_order_acquire);
    std::size_t const room = std::min<std::size_t>(bytes.size(), capacity_ - (written_ - consumed_));
    for (std::size_t done = 0; done < room;) {
      std::size_t const n = std::min(room - done, publish_bytes);
      std::memcpy(data_ + (written_ & (capacity_ - 1)), bytes.data() + done, n);
      done += n;
      written_ += n;
      if (!more || done < room || room < bytes.size()) shared_->written.store(written_, std::memory_order_release);
    }
    return room;
  }

 private:
  ring_counters* shared_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint64_t written_ = 0, consumed_ = 0;
};

/// The reading end.
class ring_reader {
 public:
  ring_reader() = default;
  ring_reader(ring_counters& shared, std::byte const* data, std::size_t capacity) noexcept
      : shared_(&shared), data_(data), capacity_(capacity) {}

  /// What is there to read, contiguous; empty if that is less than `need`.
  std::span<std::byte const> readable(std::size_t need) noexcept {
    if (written_ - consumed_ < need) written_ = shared_->written.load(std::memory_order_acquire);
    if (written_ - consumed_ < need) return {};
    return {data_ + (consumed_ & (capacity_ - 1)), static_cast<std::size_t>(written_ - consumed_)};
  }

  void consume(std::size_t n) noexcept {
    consumed_ += n;
    shared_->consumed.store(consumed_, std::memory_order_release);
  }

  std::size_t read(std::span<std::byte> into) noexcept {
    std::size_t done = 0;
    while (done < into.size()) {
      auto const have = readable(1);
      if (have.empty()) break;
      std::size_t const n = std::min({have.size(), into.size() - done, publish_bytes});
      std::memcpy(into.data() + done, have.data(), n);
      consume(n);
      done += n;
    }
    return done;
  }

 private:
  ring_counters* shared_ = nullptr;
  std::byte const* data_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint64_t written_ = 0, consumed_ = 0;
};

}  // namespace rondo::inline v0::detail
