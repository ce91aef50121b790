#pragma once

#include <rondo/fused/sum_of_squares.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace rondo::inline v0 {

/// The sum of the squares of gradients that lie in buckets, one partial sum for each rank: that of the parts which the
/// rank would own. Whether each rank adds up its own part, or every rank all of them, the total has the same bits.
class squares_by_rank {
 public:
  explicit squares_by_rank(int ranks) : sums_(static_cast<std::size_t>(ranks)) {}

  void clear() noexcept { sums_.assign(sums_.size(), {}); }

  /// Adds a bucket, which consists of a part of equal size for each rank.
  template <class T>
  void add(std::span<T const> bucket) noexcept {
    std::size_t const part = bucket.size() / sums_.size();
    for (std::size_t r = 0; r < sums_.size(); ++r) add(r, bucket.subspan(r * part, part));
  }

  /// Adds the part of one rank.
  void add(std::size_t rank, std::span<float const> part) noexcept { sums_[rank].floats.add(part); }
  void add(std::size_t rank, std::span<double const> part) noexcept {
    for (double const value : part) sums_[rank].doubles += value * value;
  }

  double of(std::size_t rank) const noexcept { return sums_[rank].floats.total() + sums_[rank].doubles; }

  /// In the order of ranks.
  double total() const noexcept {
    double sum = 0;
    for (std::size_t r = 0; r < sums_.size(); ++r) sum += of(r);
    return sum;
  }

 private:
  struct part_sums {
    sum_of_squares floats;
    double doubles = 0;
  };

  std::vector<part_sums> sums_;
};

}  // namespace rondo::inline v0
