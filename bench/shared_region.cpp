#include "shared_region.hpp"

#include "cores.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>

namespace rondo::bench {
namespace {

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

shared_memory::shared_memory(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    throw world_error(fmt::format("{} bytes of shared memory could not be mapped: ask for smaller sizes.", bytes));
  data_ = static_cast<std::byte*>(data);
}

shared_memory::~shared_memory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

shared_region::shared_region(int ranks)
    : ranks_(ranks), spins_(crowded(allowed_cores(), ranks) ? 16 : 2048),
      memory_(sizeof(controls) +
              static_cast<std::size_t>(ranks) * (sizeof(line) + slot_words * sizeof(std::uint64_t))) {}

std::uint64_t* shared_region::slot(int rank) const {
  auto* const slots = reinterpret_cast<std::uint64_t*>(flags() + ranks_);
  return slots + static_cast<std::size_t>(rank) * slot_words;
}

void shared_coordinator::barrier() {
  region_.flag(rank_).store(++passed_, std::memory_order_release);
  auto const give_up = std::chrono::steady_clock::now() + patience_;
  for (int r = 0; r < region_.ranks(); ++r) {
    for (unsigned turns = 1; region_.flag(r).load(std::memory_order_acquire) < passed_; ++turns) {
      if (turns % region_.spins() != 0) {
        pause();
        continue;
      }
      if (region_.aborted()) throw world_error("another rank has failed.");
      if (std::chrono::steady_clock::now() > give_up)
        throw world_error(
            fmt::format("rank {} waited {} s for rank {}: it hangs or was stopped.", rank_, patience_.count(), r));
      ::sched_yield();
    }
  }
}

std::vector<std::uint64_t> shared_coordinator::gather(std::span<std::uint64_t const> mine) {
  std::vector<std::uint64_t> all(mine.size() * static_cast<std::size_t>(region_.ranks()));
  for (std::size_t done = 0; done < mine.size(); done += shared_region::slot_words) {
    auto const part = mine.subspan(done, std::min(shared_region::slot_words, mine.size() - done));
    std::copy(part.begin(), part.end(), region_.slot(rank_));
    barrier();
    for (int r = 0; r < region_.ranks(); ++r)
      std::copy_n(region_.slot(r), part.size(),
                  all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(r) * mine.size() + done));
    barrier();
  }
  return all;
}

}  // namespace rondo::bench
