#pragma once

#include <rondo/diagnostics/straggler.hpp>
#include <rondo/error.hpp>
#include <rondo/fused/clip.hpp>
#include <rondo/fused/finite.hpp>
#include <rondo/gradient/parameter.hpp>
#include <rondo/gradient/report.hpp>
#include <rondo/types.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

namespace rondo::inline v0::detail {

// What the steps of all synchronizers have in common.

/// Throws invalid_argument unless a step may begin. `open`: the one before was not finished.
inline void check_begin(bool open, gradient_step_options const& step) {
  if (open)
    throw invalid_argument("a step was begun before the one before it was finished, or that was abandoned: call "
                           "finish() on every step");
  if (!(step.weight >= 0 && std::isfinite(step.weight) && step.loss_scale > 0 && std::isfinite(step.loss_scale)))
    throw invalid_argument("a step needs a finite weight, not below 0, and a finite loss scale above 0");
}

inline void check_open(bool open) {
  if (!open) throw invalid_argument("this step is finished: begin another one");
}

inline void check_number(std::size_t id, std::size_t parameters) {
  if (id >= parameters)
    throw invalid_argument("there is no parameter " + std::to_string(id) + ": give its number in the list, below " +
                           std::to_string(parameters));
}

[[noreturn, gnu::cold]] inline void refuse_second(parameter const& p) {
  throw invalid_argument("parameter " + p.text() +
                         " was ready twice in a step: call ready() once, after all has been added to its gradient");
}

[[noreturn, gnu::cold]] inline void complain_about_missing(parameter const& p, rank_t rank) {
  throw invalid_argument("the gradient of parameter " + p.text() + " was not ready on rank " + std::to_string(rank) +
                             " when its step was finished: call ready() for every parameter, or set allow_unused",
                         rank);
}

/// Fills in the norm of the mean and what follows from it. `squares`: the sum of those of the reduced gradients, whose
/// mean is what they are divided by `divisor`.
inline void judge(gradient_report& r, double squares, bool finite, double divisor, double max_norm) noexcept {
  r.finite = finite;
  r.norm = std::sqrt(squares) / divisor;
  if (is_finite(r.norm) && is_finite(max_norm)) r.clip = static_cast<double>(clip_factor(r.norm * r.norm, max_norm));
}

/// Finds out who was last, from the times in the report.
inline void name_slowest(gradient_report& r, straggler_log& log) {
  auto const [fastest, slowest] = std::minmax_element(r.own.begin(), r.own.end());
  r.slowest = static_cast<rank_t>(slowest - r.own.begin());
  r.behind = *slowest - *fastest;
  log.add(r.own);
}

}  // namespace rondo::inline v0::detail
