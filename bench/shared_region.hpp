#pragma once

#include "world.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>

namespace rondo::bench {

/// Anonymous memory that children inherit. Pages exist once they are touched.
class shared_memory {
 public:
  explicit shared_memory(std::size_t bytes);
  ~shared_memory();
  shared_memory(shared_memory const&) = delete;
  shared_memory& operator=(shared_memory const&) = delete;

  std::span<std::byte> bytes() const { return {data_, size_}; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_;
};

/// Flags and mail slots of a set of ranks in shared memory: one writer a cache line, sequence numbers that only grow.
class shared_region {
 public:
  static constexpr std::size_t slot_words = 8192;

  explicit shared_region(int ranks);

  /// Every rank that waits, or comes to wait, throws world_error.
  void abort() { control().aborted.store(true, std::memory_order_release); }
  bool aborted() const { return control().aborted.load(std::memory_order_acquire); }

  int ranks() const { return ranks_; }

  /// How often a rank that waits looks before it lends its core: hardly, where that keeps the awaited from running.
  unsigned spins() const { return spins_; }

  std::uint64_t* slot(int rank) const;
  std::atomic<std::uint64_t>& flag(int rank) const { return flags()[rank].value; }

 private:
  struct alignas(128) line {
    std::atomic<std::uint64_t> value;
  };
  struct alignas(128) controls {
    std::atomic<bool> aborted;
  };

  controls& control() const { return *reinterpret_cast<controls*>(memory_.bytes().data()); }
  line* flags() const { return reinterpret_cast<line*>(memory_.bytes().data() + sizeof(controls)); }

  int ranks_;
  unsigned spins_;
  shared_memory memory_;
};

/// The coordinator of ranks on one host.
class shared_coordinator final : public coordinator {
 public:
  shared_coordinator(shared_region& region, int rank, std::chrono::seconds patience)
      : region_(region), rank_(rank), patience_(patience) {}

  void barrier() override;
  std::vector<std::uint64_t> gather(std::span<std::uint64_t const> mine) override;

 private:
  shared_region& region_;
  int rank_;
  std::chrono::seconds patience_;
  std::uint64_t passed_ = 0;
};

}  // namespace rondo::bench
