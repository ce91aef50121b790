#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/detail/file_descriptor.hpp>
#include <rondo/detail/mirrored_memory.hpp>
#include <rondo/detail/shared_file.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>
#include <rondo/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <new>
#include <optional>
#include <sys/stat.h>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// Memory of one rank that all ranks of its communicator can address: a collective on buffers from here copies nothing
/// on the way.
///
/// Hands out whole pages, zero at first, and gives them back to the system when they are freed; for many small objects
/// put a std::pmr pool in front of it. Allocation is local: no other rank takes part. Throws error with sizes when
/// memory is short. Calls may come from several threads.
class registered_memory final : public std::pmr::memory_resource {
 public:
  /// `files` are the shared files of all ranks, by rank. From byte `from` on they hold nothing but this memory, up to
  /// their end; none of it is reserved, or mapped, before it is used.
  registered_memory(rank_t rank, std::vector<std::shared_ptr<detail::file_descriptor const>> files, std::size_t from)
      : rank_(rank), from_(from), files_(std::move(files)), maps_(files_.size()) {}

  /// Where a buffer of this rank lies, as the other ranks may be told; nothing if it does not lie here.
  std::optional<std::uint64_t> place_of(void const* buffer, std::size_t bytes) const noexcept {
    std::less<std::byte const*> const before;
    auto const* const p = static_cast<std::byte const*>(buffer);
    detail::mapping const& own = detail::by_rank(maps_, rank_);
    std::scoped_lock const lock(mutex_);
    if (!own.data() || before(p, own.data()) || before(own.data() + own.size(), p + bytes)) return std::nullopt;
    return static_cast<std::uint64_t>(p - own.data());
  }

  /// The memory at a place of `owner`. Throws error if it cannot be mapped.
  std::byte* at(rank_t owner, std::uint64_t place) {
    std::scoped_lock const lock(mutex_);
    return map_of(owner).data() + place;
  }

 private:
  struct block {
    std::size_t offset, bytes;
  };

  detail::mapping const& map_of(rank_t owner) {
    detail::mapping& map = detail::by_rank(maps_, owner);
    if (map.data()) return map;
    int const file = detail::by_rank(files_, owner)->get();
    struct stat about {};
    if (::fstat(file, &about) != 0) throw std::bad_alloc();
    map = detail::map_shared(file, from_, static_cast<std::size_t>(about.st_size) - from_, MAP_NORESERVE);
    if (owner == rank_) free_.push_back({0, map.size()});
    return map;
  }

  static constexpr std::size_t pages(std::size_t bytes) noexcept {
    return (std::max<std::size_t>(bytes, 1) + detail::page_bytes - 1) / detail::page_bytes * detail::page_bytes;
  }

  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    std::scoped_lock const lock(mutex_);
    std::byte* const base = map_of(rank_).data();
    std::size_t const size = pages(bytes);
    auto const room = std::find_if(free_.begin(), free_.end(), [size](block const& b) { return b.bytes >= size; });
    if (alignment > detail::page_bytes) throw std::bad_alloc();
    if (bytes > size || room == free_.end())
      throw error(detail::text_of({"registered memory has no ", bytes >> 20,
                                   " MiB in one piece left: free some of it, or ask for less than this machine has"}));
    std::size_t const offset = room->offset;
    detail::reserve_pages(detail::by_rank(files_, rank_)->get(), from_ + offset, size);
    *room = {offset + size, room->bytes - size};
    if (room->bytes == 0) free_.erase(room);
    return base + offset;
  }

  void do_deallocate(void* p, std::size_t bytes, std::size_t) override {
    std::scoped_lock const lock(mutex_);
    auto const offset = static_cast<std::size_t>(static_cast<std::byte*>(p) - detail::by_rank(maps_, rank_).data());
    std::size_t const size = pages(bytes);
    detail::release_pages(detail::by_rank(files_, rank_)->get(), from_ + offset, size);
    auto const next = std::find_if(free_.begin(), free_.end(), [=](block const& b) { return b.offset > offset; });
    bool const joins_next = next != free_.end() && offset + size == next->offset;
    bool const joins_last = next != free_.begin() && next[-1].offset + next[-1].bytes == offset;
    if (joins_last) {
      next[-1].bytes += size + (joins_next ? next->bytes : 0);
      if (joins_next) free_.erase(next);
    } else if (joins_next) {
      *next = {offset, size + next->bytes};
    } else {
      free_.insert(next, {offset, size});
    }
  }

  bool do_is_equal(std::pmr::memory_resource const& other) const noexcept override { return this == &other; }

  rank_t rank_;
  std::size_t from_;
  std::vector<std::shared_ptr<detail::file_descriptor const>> files_;
  mutable std::mutex mutex_;
  std::vector<detail::mapping> maps_;
  std::vector<block> free_;  // by offset; no two of them touch
};

}  // namespace rondo::inline v0
