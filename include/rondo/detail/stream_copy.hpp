#pragma once

#include <rondo/detail/lanes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rondo::inline v0::detail {

/// As memcpy, but past the caches: for more than they hold, whose lines would be read first only to be overwritten.
/// Call finish_stream_copies() before anybody is told that the data is there.
inline void stream_copy(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
  std::size_t done = 0;
#ifdef __x86_64__
  using words = lanes<long long, 16>;
  done = std::min<std::size_t>(bytes, -reinterpret_cast<std::uintptr_t>(to) % 64);
  std::memcpy(to, from, done);
  for (; done + 64 <= bytes; done += 64)
    for (std::size_t i = done; i < done + 64; i += sizeof(words)) {
      words w;
      std::memcpy(&w, from + i, sizeof w);
#ifdef __clang__
      __builtin_nontemporal_store(w, reinterpret_cast<words*>(to + i));
#else
      __builtin_ia32_movntdq(reinterpret_cast<words*>(to + i), w);
#endif
    }
#endif
  std::memcpy(to + done, from + done, bytes - done);
}

/// Orders the stores of stream_copy() before those that follow.
inline void finish_stream_copies() noexcept {
#ifdef __x86_64__
  __builtin_ia32_sfence();
#endif
}

}  // namespace rondo::inline v0::detail
