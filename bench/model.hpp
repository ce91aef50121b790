#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::bench {

/// One parameter tensor of a model: its gradient is what data-parallel training reduces.
struct tensor {
  std::string name;
  std::size_t count;  ///< elements
};

/// The names that gradients() knows.
std::vector<std::string> model_names();

/// The gradient tensors of a model in the order in which the backward pass finishes them: the last layer first, a
/// weight that two layers share (GPT-2's embedding) at the end. Generated from the published architecture.
/// Throws usage_error for an unknown name.
std::vector<tensor> gradients(std::string_view model);

/// Elements in all tensors.
std::size_t total_count(std::span<tensor const> tensors);

/// Consecutive tensors put together until a bucket holds at least `bucket_bytes`, as data-parallel trainers do it:
/// element counts of the buckets. A tensor is never cut, so a bucket may be larger. 0: every tensor is a bucket.
std::vector<std::size_t> buckets(std::span<tensor const> tensors, std::size_t element_bytes, std::size_t bucket_bytes);

}  // namespace rondo::bench
