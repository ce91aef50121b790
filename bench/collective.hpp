#pragma once

#include <rondo/algorithm.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

namespace rondo::bench {

std::vector<collective> all_collectives();

/// By name, with or without underscores (also sendrecv). Throws usage_error.
collective parse_collective(std::string_view name);

/// busbw / algbw, the factors of nccl-tests: what makes the bandwidth of all collectives comparable to that of a link.
double bus_factor(collective what, int ranks) noexcept;

bool reduces(collective what) noexcept;     ///< takes an op
bool has_root(collective what) noexcept;    ///< takes a root
bool replicates(collective what) noexcept;  ///< every rank ends with the same bytes

/// Elements that a rank passes in and gets out.
struct shape {
  std::size_t in = 0, out = 0;
  std::size_t total = 0;  ///< the size that bandwidth is computed from: nccl-tests' definition
  std::size_t count = 0;  ///< the column `count`: elements of a whole buffer, or of one block of a blocked collective
};

/// The shape of a call of about `count` elements in all; blocked collectives use at least one element a block, except
/// for count 0.
shape shape_of(collective what, std::size_t count, int ranks, int rank, int root) noexcept;

/// Where the elements of a rank's output come from.
struct origin {
  std::size_t at;  ///< first element in the output
  std::size_t count;
  int source;          ///< the rank whose input it is, or everybody for the reduction of all inputs
  std::size_t offset;  ///< first element in that input

  static constexpr int everybody = -1;
};

/// What the output of `rank` must hold; empty where the collective leaves it alone.
std::vector<origin> origins(collective what, shape const& s, int ranks, int rank, int root);

/// Bytes that must cross the link from `rank` to the next one when ranks form a ring of links, for inputs of `total`
/// bytes. The lower bound that the TCP probe streams.
std::size_t link_bytes(collective what, std::size_t total, int ranks, int rank, int root) noexcept;

}  // namespace rondo::bench
