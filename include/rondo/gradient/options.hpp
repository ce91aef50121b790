#pragma once

#include <rondo/gradient/bucket.hpp>
#include <rondo/options.hpp>

#include <limits>

namespace rondo::inline v0 {

/// How gradients are synchronised; the same on all ranks.
struct gradient_options {
  bucket_sizes buckets{};
  bool overlap = true;        ///< false: no communication before finish()
  bool summed = false;        ///< a gradient is the sum over a rank's samples; else their mean
  bool allow_unused = false;  ///< a gradient that is not ready when the step ends counts as zero; else that is an error
  double max_norm = std::numeric_limits<double>::infinity();  ///< gradients are scaled to this global L2 norm at most
  call_options call{};                                        ///< of every reduction
};

}  // namespace rondo::inline v0
