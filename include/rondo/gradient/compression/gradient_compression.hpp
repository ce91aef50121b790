#pragma once

#include <rondo/collectives/request.hpp>
#include <rondo/communicator.hpp>
#include <rondo/gradient/compression/compressor.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// Lossy all-reduce of gradients, with error feedback: what a compressor leaves out of a contribution is kept, and
/// added to the next one (Seide et al. 2014, "1-Bit Stochastic Gradient Descent"; that this makes compressed SGD
/// converge: Karimireddy et al. 2019, "Error Feedback Fixes SignSGD and other Gradient Compression Schemes"). Over many
/// steps the sum of the results is that of the contributions, but for one step's error.
///
///     rondo::gradient_compression compressed(rondo::powersgd({.rank = 4}));
///     sync.reduce_with(std::ref(compressed));        // in a synchronizer, or
///     compressed.all_reduce(comm, 0, gradient);      // by hand: the sum over all ranks
///
/// All ranks end with the same bits. Every rank must make the same calls, with the same compressor. A Compressor is one
/// of compression/*.hpp, or any that has
///     template <transport X> compression_cost reduce(communicator<X>&, compression_job const&);
/// A gradient that is not finite on one rank is not finite on any, where the compressor says so; errors that are not
/// finite are forgotten.
template <class Compressor>
class gradient_compression {
 public:
  /// Without feedback errors are lost, which suits a compressor whose error has no bias, such as narrowed<bfloat16>.
  explicit gradient_compression(Compressor compressor, bool feedback = true)
      : compressor_(std::move(compressor)), feedback_(feedback) {}

  /// Replaces `values` by an approximation of the sum over all ranks. `bucket` is the number of the buffer, whose size
  /// must stay.
  template <transport X>
  void all_reduce(communicator<X>& ranks, std::size_t bucket, std::span<float> values) {
    auto& error = errors_[bucket];
    if (error.empty()) error.resize(values.size(), 0.0F);
    collectives::check_size("compressed all_reduce", "values", values, error.size());
    if (feedback_)
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += error[i];
    mine_.assign(values.begin(), values.end());
    sent_.resize(values.size());
    auto const cost = compressor_.reduce(ranks, compression_job{bucket, mine_, values, sent_, feedback_});
    if (feedback_)
      for (std::size_t i = 0; i < values.size(); ++i) {
        float const left = mine_[i] - sent_[i];
        error[i] = left - left == 0 ? left : 0;
      }
    auto const n = static_cast<std::uint64_t>(ranks.size());
    ++statistics_.calls;
    statistics_.sent += cost.bytes;
    statistics_.plain += 2 * (n - 1) * values.size_bytes() / n;
  }

  /// As a hook of a synchronizer: `bucket` has a number and values.
  template <transport X, class Bucket>
    requires requires(Bucket const& b) {
      std::size_t{b.number};
      std::span<float>(b.values);
    }
  void operator()(communicator<X>& ranks, Bucket const& bucket) { all_reduce(ranks, bucket.number, bucket.values); }

  compression_statistics const& statistics() const noexcept { return statistics_; }

  /// What has been left out of this rank's contributions to a bucket so far, to be saved with a checkpoint and written
  /// back before the next call. Empty before the first call for the bucket.
  std::span<float> error(std::size_t bucket) { return errors_[bucket]; }

 private:
  Compressor compressor_;
  bool feedback_;
  std::map<std::size_t, std::vector<float>> errors_;
  std::vector<float> mine_, sent_;
  compression_statistics statistics_;
};

}  // namespace rondo::inline v0
