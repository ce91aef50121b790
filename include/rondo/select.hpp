#pragma once

#include <rondo/algorithm.hpp>

#include <bit>
#include <cstddef>

namespace rondo::inline v0 {

/// What the choice of an algorithm depends on.
struct situation {
  rondo::collective collective;
  std::size_t bytes;  ///< of the whole buffer of one rank
  int ranks;
  bool keep_order = false;     ///< the operation does not commute
  bool ordered = false;        ///< every element must have the canonical summation tree
  bool shared_memory = false;  ///< the ranks share memory that the call can go through
};

/// The algorithm for a call, from a few sizes at which the winner changes on one host (see
/// docs/explanation/selection.md).
constexpr algorithm select(situation const& s) noexcept {
  constexpr std::size_t KiB = 1024;
  bool const power_of_two = std::has_single_bit(static_cast<unsigned>(s.ranks));
  switch (s.collective) {
    case collective::all_reduce:
      if (s.shared_memory) return algorithm::direct;
      if (s.bytes <= 16 * KiB) return algorithm::recursive_doubling;
      if (s.keep_order || s.ordered) return power_of_two ? algorithm::ordered_halving : algorithm::binomial;
      return s.bytes <= 512 * KiB && s.ranks > 2 ? algorithm::recursive_halving : algorithm::ring;
    case collective::reduce_scatter:
      if (s.keep_order || s.ordered) return algorithm::recursive_doubling;
      return s.bytes <= 512 * KiB ? algorithm::recursive_halving : algorithm::ring;
    case collective::all_gather: return s.bytes <= 512 * KiB ? algorithm::recursive_doubling : algorithm::ring;
    case collective::broadcast: return s.bytes <= 64 * KiB ? algorithm::binomial : algorithm::ring;
    case collective::reduce:
      return s.bytes <= 64 * KiB || s.keep_order || s.ordered ? algorithm::binomial : algorithm::ring;
    case collective::barrier: return algorithm::recursive_doubling;
    default: return algorithm::direct;
  }
}

}  // namespace rondo::inline v0
