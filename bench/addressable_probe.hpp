#pragma once

#include <cstddef>
#include <span>

namespace rondo::bench {

/// An input and an output for each rank in memory that all ranks share: what the limit of addressable memory is
/// measured on. In place the output is the input.
class shared_buffers {
 public:
  shared_buffers(std::span<std::byte> memory, int ranks, bool in_place = false)
      : base_(reinterpret_cast<float*>(memory.data())),
        each_(memory.size() / sizeof(float) / 2 / static_cast<std::size_t>(ranks)), in_place_(in_place) {}

  std::size_t capacity() const { return each_; }  ///< floats
  bool in_place() const { return in_place_; }
  float* in(int rank) const { return base_ + 2 * static_cast<std::size_t>(rank) * each_; }
  float* out(int rank) const { return in(rank) + (in_place_ ? 0 : each_); }

 private:
  float* base_;
  std::size_t each_;
  bool in_place_;
};

/// Writes the sums of elements offset … offset + count of all inputs to `out`. All inputs must have been written, and
/// stay so until all ranks have returned: not for buffers in place.
void pull_sums(shared_buffers const& all, int ranks, std::size_t offset, std::size_t count, float* out);

/// Folds the rank's slice of `count` elements of all inputs, and stores it into the outputs of all ranks. All inputs
/// must have been written; the outputs are complete when all ranks have returned.
void push_sums(shared_buffers const& all, int rank, int ranks, std::size_t count, bool non_temporal);

}  // namespace rondo::bench
