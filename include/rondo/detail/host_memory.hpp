#pragma once

#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <sys/syscall.h>
#include <unistd.h>

namespace rondo::inline v0::detail {

/// Can this process read the eight bytes around `p`, which is not null? rt_sigprocmask(2) reads a set of signals from
/// its caller before it finds that it was not told what to do with it, and says so in another way than that it could
/// not be read.
[[gnu::cold]] inline bool kernel_can_read(void const* p) noexcept {
  constexpr std::size_t set_bytes = 8;
  auto const wrong = errno;
  auto const set = reinterpret_cast<std::uintptr_t>(p) & ~std::uintptr_t{set_bytes - 1};
  bool const readable = ::syscall(SYS_rt_sigprocmask, ~0, set, nullptr, set_bytes) == 0 || errno != EFAULT;
  errno = wrong;
  return readable;
}

/// Pages that are known to be memory of the host: asking about a buffer that was used before costs a few loads. One
/// that has been given back since is taken for granted; that is no worse than not to ask.
class known_pages {
 public:
  static bool holds(std::byte const* p) noexcept {
    auto const page = reinterpret_cast<std::uintptr_t>(p) / page_bytes + 1;  // 0: none yet
    auto& known = pages_[page % pages_.size()];
    if (known.load(std::memory_order_relaxed) == page) [[likely]]
      return true;
    if (!kernel_can_read(p)) return false;
    known.store(page, std::memory_order_relaxed);
    return true;
  }

 private:
  static constexpr std::size_t page_bytes = 4096;  // the smallest
  static inline std::array<std::atomic<std::uintptr_t>, 64> pages_{};
};

[[noreturn, gnu::cold]] inline void refuse_memory(std::size_t bytes) {
  throw invalid_argument(text_of({"a buffer of ", bytes,
                                  " bytes lies where the processor cannot read: copy memory of a device to the host "
                                  "first, or use rondo/adapters/nccl.h, which does that"}));
}

/// Throws invalid_argument unless both ends of the buffer are memory that the processor reaches. Memory of a device has
/// addresses like any other, and would end the process.
inline void check_host_memory(std::byte const* data, std::size_t bytes) {
  if (bytes != 0 && !(data && known_pages::holds(data) && known_pages::holds(data + bytes - 1))) [[unlikely]]
    refuse_memory(bytes);
}

}  // namespace rondo::inline v0::detail
