#pragma once

#include <rondo/element.hpp>
#include <rondo/error.hpp>
#include <rondo/fused/optimizer.hpp>
#include <rondo/fused/shard.hpp>
#include <rondo/types.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// What one rank keeps for the weights that it owns (shard_of): their values in full precision, the moments of the
/// optimizer, and room for their reduced gradient between the two halves of a step. Nothing is kept for other weights:
/// 4 (2 + O::moments) bytes for each of the shard.
template <optimizer O>
class sharded_state {
 public:
  /// Begins with these weights, of the whole model, which are the same on all ranks.
  template <element U>
  sharded_state(std::span<U const> weights, rank_t rank, int ranks, O rule)
      : optimizer(std::move(rule)), elements_(weights.size()), counts_(shard_counts(weights.size(), ranks)),
        own_(shard_of(weights.size(), rank, ranks)), gradient_(own_.count) {
    auto const mine = weights.subspan(own_.first, own_.count);
    master_.reserve(own_.count);
    for (U const& w : mine) master_.push_back(static_cast<float>(w));
    moments_.fill(std::vector<float>(own_.count));
  }

  /// The rule of the next step; its learning rate may change from step to step, alike on all ranks.
  O optimizer;

  /// Steps taken.
  std::uint64_t steps = 0;

  /// Weights of the whole model.
  std::size_t elements() const noexcept { return elements_; }
  shard own() const noexcept { return own_; }
  std::span<std::size_t const> counts() const noexcept { return counts_; }

  /// Of the own weights: values, moment number k, and the gradient that the last step reduced. With `steps` they are
  /// all there is to save and load.
  std::span<float> master() noexcept { return master_; }
  std::span<float> moment(std::size_t k) noexcept { return moments_[k]; }
  std::span<float> gradient() noexcept { return gradient_; }

 private:
  std::size_t elements_;
  std::vector<std::size_t> counts_;
  shard own_;
  std::vector<float> master_, gradient_;
  std::array<std::vector<float>, O::moments> moments_;
};

}  // namespace rondo::inline v0
