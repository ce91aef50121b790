#pragma once

#include <rondo/detail/hash.hpp>
#include <rondo/error.hpp>
#include <rondo/gradient/parameter.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rondo::inline v0 {

/// How gradients are cut into buckets: the sizes of PyTorch's DistributedDataParallel (Li et al., VLDB 2020, section
/// 3.2.3), whose first bucket is small so that communication begins early.
struct bucket_sizes {
  std::size_t first = std::size_t{1} << 20;  ///< bytes; the first bucket is closed when it has so many
  std::size_t most = std::size_t{25} << 20;  ///< bytes; exceeded only by a bucket with a single tensor
};

/// The place of a tensor in its bucket, in elements.
struct bucket_slot {
  std::size_t parameter, offset, count;
};

/// Tensors of one type whose gradients travel together, side by side.
struct bucket {
  real_type type;                  ///< of the values; gradients lie here in sum_type(type)
  std::vector<bucket_slot> slots;  ///< by falling number of the parameter
  std::size_t count = 0;           ///< elements, with zeros behind the last tensor: a multiple of the number of ranks

  std::size_t bytes() const noexcept { return count * size_of(sum_type(type)); }
};

/// Which gradient lies where: a function of the parameters, the sizes and the number of ranks alone, so that all ranks
/// have the same without talking.
///
/// A backward pass is done with the last parameter first. So buckets take parameters from the last to the first, each
/// into the bucket of its type; a tensor is never split; and buckets are numbered by when a backward pass in that order
/// would fill them, which is the order in which they are communicated.
class bucket_plan {
 public:
  struct place {
    std::size_t bucket, slot;
  };

  /// Throws invalid_argument for parameters that cannot be reduced.
  bucket_plan(std::span<parameter const> parameters, int ranks, bucket_sizes const& sizes)
      : places_(parameters.size()) {
    check(parameters);
    std::array<std::optional<bucket>, 4> open;
    for (std::size_t id = parameters.size(); id-- > 0;) {
      parameter const& p = parameters[id];
      auto& b = open[static_cast<std::size_t>(p.type)];
      if (b && b->bytes() + p.count * size_of(sum_type(p.type)) > sizes.most) close(b);
      if (!b) b = bucket{p.type, {}};
      b->slots.push_back({id, b->count, p.count});
      b->count += p.count;
      if (b->bytes() >= (buckets_.empty() ? sizes.first : sizes.most)) close(b);
    }
    for (auto& b : open)
      if (b) close(b);
    std::sort(buckets_.begin(), buckets_.end(),
              [](bucket const& a, bucket const& b) { return a.slots.back().parameter > b.slots.back().parameter; });
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      bucket& b = buckets_[i];
      std::size_t const grain = static_cast<std::size_t>(ranks) * shard_grain;
      b.count = std::max<std::size_t>(1, (b.count + grain - 1) / grain) * grain;
      for (std::size_t s = 0; s < b.slots.size(); ++s) places_[b.slots[s].parameter] = {i, s};
    }
    detail::hasher hash;
    for (parameter const& p : parameters) hash.add(p.name).add(static_cast<std::uint64_t>(p.type)).add(p.count);
    for (bucket const& b : buckets_) hash.add(b.count).add(b.slots.size());
    digest_ = hash.value();
  }

  std::vector<bucket> const& buckets() const noexcept { return buckets_; }

  /// Where the gradient of a parameter lies.
  place of(std::size_t parameter) const noexcept { return places_[parameter]; }

  /// Equal for equal plans of equal parameters, but for a chance of 2^-64.
  std::uint64_t digest() const noexcept { return digest_; }

 private:
  static constexpr std::size_t shard_grain = 16;  // elements: a rank's part of a bucket begins on a cache line

  static void check(std::span<parameter const> parameters) {
    if (parameters.empty()) throw invalid_argument("there are no parameters to synchronise: pass those of the model");
    for (parameter const& p : parameters)
      if (p.gradient_count != p.count)
        throw invalid_argument("parameter " + p.text() + " has a gradient of " + std::to_string(p.gradient_count) +
                               " elements: give values and gradient the same size");
  }

  void close(std::optional<bucket>& b) {
    buckets_.push_back(std::move(*b));
    b.reset();
  }

  std::vector<bucket> buckets_;
  std::vector<place> places_;
  std::uint64_t digest_ = 0;
};

}  // namespace rondo::inline v0
