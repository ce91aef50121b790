#pragma once

#include <rondo/collectives/request.hpp>
#include <rondo/communicator.hpp>
#include <rondo/ops.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace rondo::inline v0 {

/// Replicas on a spring to a common centre: elastic averaging SGD, synchronous (Zhang, Choromanska and LeCun 2015,
/// "Deep learning with Elastic Averaging SGD", equations 5 and 6).
///
/// Every replica trains alone. Now and then, with x its parameters and c the centre, both move towards each other: x -=
/// pull (x - c), c += pull * the sum over all ranks of (x - c). Unlike with local_sgd, replicas stay different, and
/// explore. All ranks hold the same bits of the centre, which is what to use in the end. Every rank must make the same
/// calls; what throws is what a collective call throws.
template <transport X, element T = float>
class elastic_averaging {
 public:
  /// `parameters` must be the same on all ranks, and become the centre. `pull` is in (0, 1]; the paper has 0.9 / ranks.
  /// Throws invalid_argument if pull * ranks > 1, for then the centre would leap beyond the replicas. `ranks` must
  /// outlive this.
  elastic_averaging(communicator<X>& ranks, std::span<T const> parameters, double pull)
      : ranks_(ranks), pull_(static_cast<T>(pull)), centre_(parameters.begin(), parameters.end()),
        stretch_(centre_.size()), sum_(centre_.size()) {
    collectives::require(pull > 0 && pull * ranks.size() <= 1, [] {
      return "elastic averaging needs a pull above 0 and at most 1 / ranks: 0.9 / ranks is what the paper has";
    });
  }

  std::span<T const> centre() const noexcept { return centre_; }

  void synchronize(std::span<T> parameters) {
    collectives::check_size("synchronize", "parameters", parameters, centre_.size());
    for (std::size_t i = 0; i < centre_.size(); ++i) stretch_[i] = parameters[i] - centre_[i];
    ranks_.all_reduce(stretch_, sum_, sum);
    for (std::size_t i = 0; i < centre_.size(); ++i) {
      parameters[i] -= pull_ * stretch_[i];
      centre_[i] += pull_ * sum_[i];
    }
  }

 private:
  communicator<X>& ranks_;
  T pull_;
  std::vector<T> centre_, stretch_, sum_;
};

}  // namespace rondo::inline v0
