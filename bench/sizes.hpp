#pragma once

#include <cstddef>
#include <vector>

namespace rondo::bench {

/// The sizes of buffers to measure, in bytes, as nccl-tests takes them.
struct size_range {
  std::size_t begin = 8, end = std::size_t{64} << 20;
  double factor = 0;     ///< between sizes; 0: 8, unless there is a step
  std::size_t step = 0;  ///< between sizes, in bytes
};

/// From begin to at most end. Throws usage_error for a range that makes no sense.
std::vector<std::size_t> sizes_in(size_range const& range);

}  // namespace rondo::bench
