#pragma once

#include <rondo/detail/file_descriptor.hpp>
#include <rondo/detail/file_text.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/mman.h>

namespace rondo::inline v0::detail {

/// Bytes that the kernel believes can be had without swapping; 0 if it does not say.
inline std::size_t available_memory() {
  std::string const info = file_text("/proc/meminfo").value_or("");
  constexpr std::string_view key = "MemAvailable:";  // in KiB
  auto const at = info.find(key);
  return at == info.npos ? 0 : std::size_t{std::strtoull(info.c_str() + at + key.size(), nullptr, 10)} << 10;
}

inline constexpr std::size_t page_bytes = 4096;

/// Reserves a part of a file in memory, zero bytes at first: touching it later cannot fail.
inline void reserve_pages(int file, std::size_t from, std::size_t bytes) {
  auto const mib = [](std::size_t n) { return (n + (std::size_t{1} << 20) - 1) >> 20; };
  std::size_t const free = available_memory();
  if (free != 0 && bytes > free)
    throw error(text_of({"shared memory needs ", mib(bytes), " MiB for this rank and only ", mib(free),
                         " MiB are free: use fewer ranks per host or free some memory"}));
  int const failed = ::posix_fallocate(file, static_cast<off_t>(from), static_cast<off_t>(bytes));
  if (failed != 0)
    throw error(
        text_of({"cannot reserve ", mib(bytes), " MiB of shared memory (", std::strerror(failed), "; ", mib(free),
                 " MiB are free): raise the memory limit of this container or use fewer ranks per host"}));
}

/// Gives a part of a file in memory back to the system; it reads as zero bytes afterwards.
inline void release_pages(int file, std::size_t from, std::size_t bytes) noexcept {
  ::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from), static_cast<off_t>(bytes));
}

/// A file in memory, without a name, so that nothing is left behind however its users end: `reserved` zero bytes, and
/// room for `more` after them.
inline file_descriptor make_shared_file(std::size_t reserved, std::size_t more = 0) {
  file_descriptor file(::memfd_create("rondo", MFD_CLOEXEC));
  if (!file) throw error(text_of({"cannot make a file in memory (", std::strerror(errno), "): use tcp"}));
  reserve_pages(file.get(), 0, reserved);
  if (more != 0 && ::ftruncate(file.get(), static_cast<off_t>(reserved + more)) != 0)
    throw error(text_of({"cannot size a file in memory (", std::strerror(errno),
                         "): raise the limit on the size of files (ulimit -f)"}));
  return file;
}

}  // namespace rondo::inline v0::detail
