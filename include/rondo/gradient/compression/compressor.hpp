#pragma once

#include <rondo/config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace rondo::inline v0 {

/// One bucket of one rank on its way through a compressor. The four spans have one size.
struct compression_job {
  std::size_t bucket;           ///< number of the bucket: the same values, and the same size, in every step
  std::span<float const> mine;  ///< this rank's contribution
  std::span<float> total;       ///< to become an approximation of the sum over all ranks, the same bits on all
  std::span<float> sent;        ///< to become the part of `mine` that is in there; the rest is this rank's error
  bool feeds_back;              ///< errors are added to the next contribution, so a compressor may keep its own as well
};

/// What a compressor has put on the wire for one job.
struct compression_cost {
  std::uint64_t bytes;  ///< that this rank sent
};

/// How much compression has saved, on this rank.
struct compression_statistics {
  std::uint64_t calls = 0;
  std::uint64_t sent = 0;   ///< bytes
  std::uint64_t plain = 0;  ///< bytes that a ring would have sent uncompressed

  double ratio() const noexcept { return sent == 0 ? 1 : static_cast<double>(plain) / static_cast<double>(sent); }
};

}  // namespace rondo::inline v0
