#pragma once

#include <rondo/collectives/request.hpp>
#include <rondo/communicator.hpp>
#include <rondo/ops.hpp>
#include <rondo/work.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace rondo::inline v0 {

/// What moves the common parameters: the outer optimiser, SGD with the momentum of Nesterov.
struct outer_sgd {
  double rate = 0.7, momentum = 0.9;  ///< as DiLoCo has them
};

/// Plain averaging of parameters: local SGD.
inline constexpr outer_sgd averaging{.rate = 1, .momentum = 0};

/// Replicas that train alone for many steps and then agree: DiLoCo (Douillard et al. 2023, arXiv 2311.08105, algorithm
/// 1), and with `averaging` local SGD (Stich 2019, "Local SGD Converges Fast and Communicates Little").
///
/// The way that a replica has gone since the last time is taken for a gradient: with d the mean over all ranks of
/// common
/// - local parameters, v = momentum v + d, common -= rate (d + momentum v). All ranks hold the same bits of the common
/// parameters. Every rank must make the same calls; what throws is what a collective call throws.
///
/// To overlap with further steps, call begin() and some steps later finish(); to send one part of the parameters after
/// the other, have one object for each part (Douillard et al. 2025, "Streaming DiLoCo", arXiv 2501.18512).
template <transport X, element T = float>
class local_sgd {
 public:
  /// `parameters` must be the same on all ranks, and become the common ones. `ranks` must outlive this.
  local_sgd(communicator<X>& ranks, std::span<T const> parameters, outer_sgd outer = {})
      : ranks_(ranks), rate_(static_cast<T>(outer.rate)), momentum_(static_cast<T>(outer.momentum)),
        common_(parameters.begin(), parameters.end()), difference_(common_.size()), velocity_(common_.size()) {}

  std::span<T const> common() const noexcept { return common_; }

  /// Moves the common parameters by what all ranks have learnt, and `parameters` there.
  void synchronize(std::span<T> parameters) {
    begin(parameters);
    finish(parameters);
  }

  /// Starts to exchange what all ranks have learnt by now.
  void begin(std::span<T const> parameters) {
    collectives::check_size("begin", "parameters", parameters, common_.size());
    exchange_.wait();
    for (std::size_t i = 0; i < common_.size(); ++i) difference_[i] = common_[i] - parameters[i];
    exchange_ = ranks_.start_all_reduce(difference_, avg);
  }

  /// Waits for that, moves the common parameters, and sets `parameters` = keep * parameters + (1 - keep) * common. What
  /// was learnt since begin() is lost with keep = 0, and kept in part with more.
  void finish(std::span<T> parameters, double keep = 0) {
    collectives::check_size("finish", "parameters", parameters, common_.size());
    exchange_.wait();
    auto const mine = static_cast<T>(keep), theirs = static_cast<T>(1 - keep);
    for (std::size_t i = 0; i < common_.size(); ++i) {
      velocity_[i] = momentum_ * velocity_[i] + difference_[i];
      common_[i] -= rate_ * (difference_[i] + momentum_ * velocity_[i]);
    }
    if (keep == 0)
      std::copy(common_.begin(), common_.end(), parameters.begin());
    else
      for (std::size_t i = 0; i < common_.size(); ++i) parameters[i] = mine * parameters[i] + theirs * common_[i];
  }

 private:
  communicator<X>& ranks_;
  T rate_, momentum_;
  std::vector<T> common_, difference_, velocity_;
  work exchange_;  // of difference_
};

}  // namespace rondo::inline v0
