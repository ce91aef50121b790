#pragma once

#include <rondo/types.hpp>

#include <chrono>
#include <cstddef>
#include <vector>

namespace rondo::inline v0 {

/// What a rank tells about itself while gradients are reduced, for one step.
struct gradient_step_options {
  double weight = 1;      ///< samples, or tokens, behind this rank's gradients; 0: it has none, and none are read
  double loss_scale = 1;  ///< by which the loss was multiplied; gradients are divided by it. The same on all ranks
  bool synchronize =
      true;  ///< false: only adds the weight to that of the next step, whose gradients include this one's
};

/// What a step came to. All but the times and `bytes` are the same bits on every rank.
struct gradient_report {
  using seconds = std::chrono::duration<double>;

  double weight = 0;   ///< the sum over all ranks
  double norm = 0;     ///< L2 norm of the mean of all gradients, before it was clipped
  double clip = 1;     ///< what gradients were multiplied with so that their norm is not above the largest allowed
  bool finite = true;  ///< false: an infinity or a NaN is among the reduced gradients

  // From begin() to the end of finish(): compute + exposed + update.
  seconds compute{};  ///< until finish() was called: the backward pass
  seconds exposed{};  ///< finish() waited for communication
  seconds update{};   ///< finish() computed: scaled, clipped and copied gradients, made the step
  seconds hidden{};   ///< communication behind the backward pass: not a part of the sum
  seconds wall() const noexcept { return compute + exposed + update; }

  std::size_t bytes = 0;  ///< of buckets that this rank handed to collectives

  /// For each rank the time from the end of the last communication to its last gradient: what it did by itself. From
  /// begin() in the first step.
  std::vector<seconds> own;

  rank_t slowest = nobody;  ///< the one with the longest of these times
  seconds behind{};         ///< how much longer it was than the shortest: so long the fastest rank had to wait
};

}  // namespace rondo::inline v0
