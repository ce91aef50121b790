#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rondo::bench::peers {

inline constexpr int most_ranks = 64;
inline constexpr int most_timed = 1024;

/// The memory that the ranks of one system share with the command: a memfd, zero at first. What follows it is the
/// system's own.
struct region {
  struct alignas(128) line {
    std::atomic<std::uint64_t> arrivals;
  };
  line ranks[most_ranks];
  double times_us[most_ranks][most_timed];  ///< of the timed calls of the latest turn
  bool pin;                                 ///< each rank on a core of its own, where there are enough
};

/// What a rank says first, on a socket of its own.
struct greeting {
  std::int32_t rank, ranks;
  char name[56];  ///< of the library and its version
};

/// What the command asks each rank of a system for.
struct turn {
  std::uint64_t bytes;
  std::int32_t series;  ///< which of the ways that this system has
  std::int32_t warm_up, timed;
};

/// What each rank answers when it has done so.
struct outcome {
  std::uint64_t wrong;  ///< elements
  char trouble[248];    ///< the sentence of the error that ends this rank, or nothing
};

}  // namespace rondo::bench::peers
