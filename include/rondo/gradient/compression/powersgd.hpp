#pragma once

#include <rondo/collectives/request.hpp>
#include <rondo/communicator.hpp>
#include <rondo/gradient/compression/compressor.hpp>
#include <rondo/gradient/compression/low_rank.hpp>
#include <rondo/ops.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// The same on all ranks.
struct powersgd_options {
  std::size_t rank = 4;
  std::uint64_t seed = 1;  ///< of the first factors

  /// By number of the bucket, its matrices. What is in none of them is sent as it is, and so is a matrix that would not
  /// shrink. A bucket that is not named here is taken for one matrix, as square as can be.
  std::map<std::size_t, std::vector<matrix_place>> matrices{};
};

/// A compressor that sends the factors of a matrix of low rank: one step of power iteration, from where the last call
/// ended (Vogels et al. 2019, "PowerSGD", arXiv 1905.13727, algorithm 1). With M the sum over all ranks, n x m: P = M
/// Q, made orthogonal; Q = M' P; the result is P Q', the part of M in the space of P: never farther from M than zero
/// is, and exact where M has no higher rank. Linear in M, so all_reduce adds it up: (n + m) rank numbers instead of n
/// m. Needs error feedback; a rank keeps the part of its contribution that is not in the space of P.
class powersgd {
 public:
  explicit powersgd(powersgd_options options = {}) : options_(std::move(options)) {
    collectives::require(options_.rank > 0, [] { return "powersgd needs a rank of at least 1"; });
  }

  template <transport X>
  compression_cost reduce(communicator<X>& ranks, compression_job const& job) {
    auto found = factors_.find(job.bucket);
    if (found == factors_.end())
      found = factors_
                  .emplace(job.bucket, detail::low_rank(matrices_of(job.bucket, job.mine.size()), job.mine.size(),
                                                        options_.rank, options_.seed))
                  .first;
    auto& factors = found->second;
    factors.multiply(job.mine);
    ranks.all_reduce(factors.left(), sum);
    factors.multiply_back(job.mine);
    factors.expand(job.sent);
    ranks.all_reduce(factors.right(), sum);
    factors.expand(job.total);
    auto const n = static_cast<std::uint64_t>(ranks.size());
    return {2 * (n - 1) * (factors.left().size_bytes() + factors.right().size_bytes()) / n};
  }

 private:
  std::vector<matrix_place> matrices_of(std::size_t bucket, std::size_t size) const {
    if (auto const named = options_.matrices.find(bucket); named != options_.matrices.end()) return named->second;
    auto const rows = std::max<std::size_t>(1, static_cast<std::size_t>(std::sqrt(static_cast<double>(size))));
    return {{0, rows, size / rows}};
  }

  powersgd_options options_;
  std::map<std::size_t, detail::low_rank> factors_;  // by bucket
};

}  // namespace rondo::inline v0
