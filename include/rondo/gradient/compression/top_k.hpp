#pragma once

#include <rondo/collectives/request.hpp>
#include <rondo/communicator.hpp>
#include <rondo/gradient/compression/compressor.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

namespace rondo::inline v0 {

/// A compressor that sends the numbers with the largest magnitudes and their places (Stich et al. 2018, "Sparsified SGD
/// with Memory", arXiv 1809.07599). Of each rank's contribution u at most (1 - ratio) |u|^2 is left out. Needs error
/// feedback. NaN counts as largest.
///
/// Every rank gets all chosen numbers of all ranks, 8 bytes each: fewer bytes than a ring only while ratio < 1 / ranks.
class top_k {
 public:
  /// `ratio`: the share of the numbers to send, above 0 and at most 1; one number at least.
  explicit top_k(double ratio = 0.01) : ratio_(ratio) {
    collectives::require(ratio > 0 && ratio <= 1,
                         [] { return "top_k sends a share of the numbers: give it a ratio above 0 and at most 1"; });
  }

  template <transport X>
  compression_cost reduce(communicator<X>& ranks, compression_job const& job) {
    collectives::require(job.mine.size() <= std::numeric_limits<std::uint32_t>::max(),
                         [] { return "top_k numbers its places by 32 bits: use smaller buckets"; });
    auto const n = static_cast<std::size_t>(ranks.size());
    choose(job.mine);
    all_.resize(n * chosen_.size());
    ranks.all_gather(chosen_, all_);
    std::fill(job.sent.begin(), job.sent.end(), 0.0F);
    std::fill(job.total.begin(), job.total.end(), 0.0F);
    for (auto const& [place, value] : chosen_) job.sent[place] = value;
    for (auto const& [place, value] : all_) job.total[place] += value;
    return {(n - 1) * chosen_.size() * sizeof(entry)};
  }

 private:
  struct entry {
    std::uint32_t place;
    float value;
  };

  /// Of a float without its sign, in an order that NaN keeps, too.
  static std::uint32_t magnitude(float x) noexcept { return std::bit_cast<std::uint32_t>(x) & 0x7fffffffU; }

  /// Of equal magnitudes those that come first.
  void choose(std::span<float const> values) {
    chosen_.clear();
    if (values.empty()) return;
    auto const k = std::clamp<std::size_t>(
        static_cast<std::size_t>(std::ceil(ratio_ * static_cast<double>(values.size()))), 1, values.size());
    magnitudes_.resize(values.size());
    std::transform(values.begin(), values.end(), magnitudes_.begin(), magnitude);
    auto const last = magnitudes_.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(magnitudes_.begin(), last, magnitudes_.end(), std::greater<>());
    std::uint32_t const least = *last;
    auto at_least = k - static_cast<std::size_t>(
                            std::count_if(magnitudes_.begin(), last, [&](std::uint32_t m) { return m > least; }));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint32_t const m = magnitude(values[i]);
      if (m < least || (m == least && at_least == 0)) continue;
      if (m == least) --at_least;
      chosen_.push_back({static_cast<std::uint32_t>(i), values[i]});
    }
  }

  double ratio_;
  std::vector<std::uint32_t> magnitudes_;
  std::vector<entry> chosen_, all_;
};

}  // namespace rondo::inline v0
