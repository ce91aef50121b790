#pragma once

#include <rondo/transports/cuda_ipc/runtime.hpp>

#include <chrono>
#include <cstddef>

namespace rondo::inline v0 {

/// How processes get at each other's memory on devices. Within one process pointers do.
enum class device_sharing : unsigned char {
  automatic,  ///< files where every rank has them, else handles
  files,      ///< memory lasts until nobody maps it: a rank may leave at any time
  handles     ///< memory that is open elsewhere must not be freed: leaving waits for the others
};

template <device_runtime R>
struct cuda_ipc_options {
  R runtime{};
  int device = -1;  ///< of this rank; -1: the current device of the thread that connects

  /// On which copies from and to buffers of the caller are enqueued, and waited for: what was enqueued there before
  /// comes first.
  typename R::stream stream{};

  std::size_t ring_bytes = std::size_t{4} << 20;  ///< on the reader's device, for each peer; the same on every rank
  std::size_t arena_bytes = 0;                    ///< for kernels, see cuda_ipc::arena; the same on every rank
  device_sharing sharing = device_sharing::automatic;  ///< the same on every rank

  /// How long leaving waits at most for peers that have opened a handle. What they have open then stays allocated until
  /// the process ends.
  std::chrono::milliseconds farewell = std::chrono::seconds(2);
};

}  // namespace rondo::inline v0
