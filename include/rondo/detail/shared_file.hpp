#pragma once

#include <rondo/detail/file_descriptor.hpp>
#include <rondo/error.hpp>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <sys/mman.h>

namespace rondo::inline v0::detail {

/// Bytes that the kernel believes can be had without swapping; 0 if it does not say.
inline std::size_t available_memory() {
  std::ifstream info("/proc/meminfo");
  for (std::string key; info >> key;) {
    std::size_t kib = 0;
    if (key == "MemAvailable:" && info >> kib) return kib << 10;
    info.ignore(256, '\n');
  }
  return 0;
}

/// A file of `bytes` zero bytes in memory, without a name, so that nothing is left behind however its users end. Its
/// pages are reserved here: touching them later cannot fail.
inline file_descriptor make_shared_file(std::size_t bytes) {
  auto const mib = [](std::size_t n) { return std::to_string((n + (std::size_t{1} << 20) - 1) >> 20) + " MiB"; };
  std::size_t const free = available_memory();
  if (free != 0 && bytes > free)
    throw error("shared memory needs " + mib(bytes) + " for this rank and only " + mib(free) +
                " are free: use fewer ranks per host or free some memory");
  file_descriptor file(::memfd_create("rondo", MFD_CLOEXEC));
  int const failed = file ? ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)) : errno;
  if (failed != 0)
    throw error("cannot reserve " + mib(bytes) + " of shared memory (" + std::strerror(failed) + "; " + mib(free) +
                " are free): raise the memory limit of this container or use fewer ranks per host");
  return file;
}

}  // namespace rondo::inline v0::detail
