#pragma once

#include "datatype.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace rondo::bench {

/// Inputs that show what a collective did to them, and the outputs to expect.
///
/// The input of each rank repeats a table whose length is a prime, so that a block in the wrong place is seen. For
/// reductions the entries of the table take turns:
///  - integers: random bits; the result must be exact, modulo 2^n;
///  - floats, even entries: the bits of one significand dealt out to the ranks, so that every partial sum is
///    representable: a contribution that is missing or counted twice is seen whatever the type, the result must be
///    exact;
///  - floats, odd entries: random numbers of one sign; compared with the reduction in double precision of the rounded
///    inputs. Each of the p - 1 additions, and each hop that carries a partial sum in the type itself, rounds a number
///    no larger than the result once: at most p/2 ulp for sum and mulsum, one more for the division of avg, p for prod
///    (half an ulp is up to one relative rounding error there). min and max must be exact.
class pattern {
 public:
  virtual ~pattern() = default;

  /// Writes the elements offset, offset + 1, … of the input of `rank`. Another `phase` gives other values.
  virtual void fill(void* data, std::size_t count, int rank, std::size_t offset, std::size_t phase) const = 0;

  /// How many of `count` elements differ from elements offset, … of the input of `source`, or of the reduction where
  /// source < 0.
  virtual std::size_t count_wrong(void const* data, std::size_t count, int source, std::size_t offset,
                                  std::size_t phase) const = 0;
};

/// The pattern for a type, an op and a number of ranks. Inputs that are only moved, not reduced, are the same as for
/// sum.
std::unique_ptr<pattern const> make_pattern(datatype type, reduction op, int ranks);

/// A hash of all bytes, to compare outputs across ranks; also the benchmark's reader: it touches every byte. Reads
/// about 8 bytes a clock cycle.
std::uint64_t hash_bytes(std::span<std::byte const> bytes) noexcept;

}  // namespace rondo::bench
