#pragma once

#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace rondo::inline v0::detail {

/// A mapping that is unmapped with its owner.
class mapping {
 public:
  mapping() = default;
  mapping(std::byte* data, std::size_t bytes) noexcept : data_(data), bytes_(bytes) {}
  mapping(mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  mapping& operator=(mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~mapping() {
    if (data_) ::munmap(data_, bytes_);
  }

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

inline std::byte* map_or_throw(void* where, std::size_t bytes, int flags, int fd, std::size_t offset) {
  void* const p = ::mmap(where, bytes, PROT_READ | PROT_WRITE, flags, fd, static_cast<off_t>(offset));
  if (p == MAP_FAILED)
    throw error(text_of({"cannot map ", bytes, " bytes of shared memory (", std::strerror(errno),
                         "): raise the limit on address space or use fewer ranks per host"}));
  return static_cast<std::byte*>(p);
}

/// Maps `bytes` of the file at `offset`.
inline mapping map_shared(int fd, std::size_t offset, std::size_t bytes, int flags = 0) {
  return {map_or_throw(nullptr, bytes, MAP_SHARED | flags, fd, offset), bytes};
}

/// Maps `bytes` of the file at `offset` twice in a row, so that a run that crosses the end of a ring is contiguous.
inline mapping map_mirrored(int fd, std::size_t offset, std::size_t bytes) {
  mapping whole(map_or_throw(nullptr, 2 * bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), 2 * bytes);
  map_or_throw(whole.data(), bytes, MAP_SHARED | MAP_FIXED, fd, offset);
  map_or_throw(whole.data() + bytes, bytes, MAP_SHARED | MAP_FIXED, fd, offset);
  return whole;
}

}  // namespace rondo::inline v0::detail
