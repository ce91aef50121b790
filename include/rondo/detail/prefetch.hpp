#pragma once

#include <cstddef>

namespace rondo::inline v0::detail {

/// Asks for the cache lines of `bytes` at `p` to be this core's, to be written, without waiting for them. A hint.
inline void prefetch_to_write(std::byte const* p, std::size_t bytes) noexcept {
  constexpr std::size_t line = 64;
  for (std::size_t at = 0; at < bytes; at += line) {
#if defined(__x86_64__) || defined(__i386__)
    asm volatile("prefetchw %0" : : "m"(p[at]));  // the builtin would only ask for them to be read
#else
    __builtin_prefetch(p + at, 1);
#endif
  }
}

}  // namespace rondo::inline v0::detail
