#pragma once

#include <rondo/adapters/nccl/types.h>

#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

namespace rondo::inline v0::nccl {

/// How to get at memory that the processor cannot address. Every function throws refusal when CUDA reports an error.
///
/// A file that is compiled without CUDA, and one with it, are the same code but for who fills this in: so both may be
/// part of one program.
struct device_memory {
  bool (*holds)(void const* address);            ///< must it be copied to be read here?
  int (*current)();                              ///< the device of this thread, 0 if there is none
  void* (*allocate)(std::size_t bytes);          ///< on that device
  void (*free)(void* address);                   ///< what allocate() gave
  void* (*allocate_staging)(std::size_t bytes);  ///< pinned memory of the host
  void (*free_staging)(void* address) noexcept;
  void (*copy)(void* to, void const* from, std::size_t bytes, cudaStream_t);  ///< enqueues it, either way
  void (*wait)(cudaStream_t);                                                 ///< until all of the stream is done
};

/// Null where no file of the program has CUDA: then all memory is the host's, and streams mean nothing.
inline device_memory const* devices = nullptr;

inline bool on_device(void const* address) { return devices && address && devices->holds(address); }

/// Pinned memory, kept for the next call: pinning takes longer than most calls.
class staging_pool {
 public:
  staging_pool() = default;
  staging_pool(staging_pool const&) = delete;
  staging_pool& operator=(staging_pool const&) = delete;
  ~staging_pool() {
    for (auto const& [bytes, address] : idle_) devices->free_staging(address);
  }

  /// A piece of the pool, which goes back there.
  class lease {
   public:
    lease(staging_pool& pool, std::size_t bytes) : pool_(pool) {
      std::scoped_lock const lock(pool_.mutex_);
      auto found = pool_.idle_.lower_bound(bytes);
      if (found == pool_.idle_.end()) found = pool_.idle_.emplace(bytes, devices->allocate_staging(bytes));
      piece_ = pool_.idle_.extract(found);
    }
    lease(lease const&) = delete;
    lease& operator=(lease const&) = delete;
    ~lease() {
      std::scoped_lock const lock(pool_.mutex_);
      pool_.idle_.insert(std::move(piece_));
    }
    std::byte* data() const noexcept { return static_cast<std::byte*>(piece_.mapped()); }

   private:
    staging_pool& pool_;
    std::multimap<std::size_t, void*>::node_type piece_;
  };

 private:
  std::mutex mutex_;
  std::multimap<std::size_t, void*> idle_;
};

}  // namespace rondo::inline v0::nccl
