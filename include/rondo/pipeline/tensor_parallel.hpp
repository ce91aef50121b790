#pragma once

#include <rondo/collectives/request.hpp>
#include <rondo/communicator.hpp>
#include <rondo/ops.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace rondo::inline v0 {

/// What the ranks that divide a layer y = W x say to each other (Shoeybi et al. 2019, "Megatron-LM", arXiv 1909.08053,
/// section 3). A batch is `samples` columns of features, the features of a sample side by side.
///
///  - Columns of x divided, "row parallel": each rank multiplies its features with its part of W and has a part of the
///    sum. Forward: add() the outputs. Backward: nothing.
///  - Rows of W divided, "column parallel": each rank makes its features of y from all of x. Forward: nothing, or
///    gather() where all of y is needed. Backward: add() the gradients of x, or keep_own() of the gradient of y.
///
/// A column parallel layer followed by a row parallel one needs one add() forward and one backward. Every rank must
/// make the same calls; all ranks get the same bits; what throws is what a collective call throws.
template <transport X>
class tensor_parallel {
 public:
  /// `ranks` must outlive this.
  explicit tensor_parallel(communicator<X>& ranks) noexcept : ranks_(ranks) {}

  /// The first of `features` features that belong to a rank; those of rank r end where those of r + 1 begin. They may
  /// be uneven.
  std::size_t first(std::size_t features, rank_t rank) const noexcept {
    return features * static_cast<std::size_t>(rank) / static_cast<std::size_t>(ranks_.size());
  }
  /// How many of them belong to this rank.
  std::size_t own(std::size_t features) const noexcept {
    return first(features, ranks_.rank() + 1) - first(features, ranks_.rank());
  }

  /// Adds the partial sums of all ranks up, in place.
  template <writable_buffer R>
  void add(R&& partial) {
    ranks_.all_reduce(partial, sum);
  }

  /// From own(features) features of every sample to all of them.
  template <element T>
  void gather(std::span<T const> part, std::span<T> whole, std::size_t features) {
    std::size_t const samples = check("gather", part.size(), whole.size(), features);
    std::vector<T> parts(whole.size());
    std::vector<std::size_t> counts;
    for (rank_t r = 0; r < ranks_.size(); ++r)
      counts.push_back(samples * (first(features, r + 1) - first(features, r)));
    ranks_.all_gather_v(part, parts, counts);
    auto from = parts.cbegin();
    for (rank_t r = 0; r < ranks_.size(); ++r) {
      std::size_t const begin = first(features, r);
      auto const each = static_cast<std::ptrdiff_t>(first(features, r + 1) - begin);
      for (std::size_t s = 0; s < samples; ++s, from += each)
        std::copy(from, from + each, whole.begin() + static_cast<std::ptrdiff_t>(s * features + begin));
    }
  }

  /// The way back: own(features) features of every sample, out of all. Local.
  template <element T>
  void keep_own(std::span<T const> whole, std::span<T> part, std::size_t features) const {
    std::size_t const samples = check("keep_own", part.size(), whole.size(), features), each = own(features);
    for (std::size_t s = 0; s < samples; ++s) {
      auto const from = whole.subspan(s * features + first(features, ranks_.rank()), each);
      std::copy(from.begin(), from.end(), part.subspan(s * each, each).begin());
    }
  }

 private:
  /// The number of samples.
  std::size_t check(char const* call, std::size_t part, std::size_t whole, std::size_t features) const {
    collectives::require(features != 0 && whole % features == 0 && part == whole / features * own(features), [&] {
      return std::string(call) + " got " + std::to_string(part) + " numbers for " + std::to_string(whole) + " of " +
             std::to_string(features) + " features a sample: this rank has " + std::to_string(own(features)) +
             " features of each sample";
    });
    return whole / features;
  }

  communicator<X>& ranks_;
};

}  // namespace rondo::inline v0
