#pragma once

#include <rondo/config.hpp>

#include <algorithm>
#include <cstdint>

namespace rondo::inline v0 {

enum class pass : std::uint8_t { forward, backward };

/// What a stage of a pipeline does next: one pass of one microbatch.
struct pipeline_step {
  pass what;
  int microbatch;

  friend constexpr bool operator==(pipeline_step const&, pipeline_step const&) = default;
};

/// Which pass every stage of a pipeline makes when: one forward, one backward (Narayanan et al. 2019, "PipeDream";
/// with a flush at the end of every batch, Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU
/// Clusters Using Megatron-LM", section 2.2.1). A pure function, as schedules are.
///
/// A stage first makes as many forward passes as there are stages behind it, then forward and backward in turn, then
/// the backward passes that are left. It keeps the activations of at most kept(stage) microbatches at a time, however
/// many there are. A microbatch gets its backward passes in the order of its number, so that sums of gradients have the
/// order of a single process. No stage is ever more than one message ahead of what its neighbour needs to go on:
/// channels of one slot suffice.
struct one_f_one_b {
  int stages, microbatches;

  /// Steps of each stage.
  constexpr int steps() const noexcept { return 2 * microbatches; }

  /// Step `i` of a stage, 0 … steps() - 1.
  constexpr pipeline_step at(int stage, int i) const noexcept {
    int const ahead = warm_up(stage), in_turn = 2 * (microbatches - ahead);
    if (i < ahead) return {pass::forward, i};
    if (i >= ahead + in_turn) return {pass::backward, i - microbatches};
    int const turn = i - ahead;
    if (turn % 2 == 0) return {pass::forward, ahead + turn / 2};
    return {pass::backward, turn / 2};
  }

  /// The most microbatches whose activations the stage holds at a time.
  constexpr int kept(int stage) const noexcept { return std::min(warm_up(stage) + 1, microbatches); }

  /// Is it the last step that adds to the stage's gradients? Then they can be synchronised with other pipelines.
  constexpr bool completes_gradients(pipeline_step s) const noexcept {
    return s.what == pass::backward && s.microbatch == microbatches - 1;
  }

  /// The share of the time in which a stage idles, if all passes of a kind take the same time on all stages and
  /// messages none: (p - 1) / (m + p - 1) with p stages and m microbatches.
  constexpr double bubble_fraction() const noexcept {
    return static_cast<double>(stages - 1) / static_cast<double>(microbatches + stages - 1);
  }

 private:
  constexpr int warm_up(int stage) const noexcept { return std::min(stages - 1 - stage, microbatches); }
};

}  // namespace rondo::inline v0
