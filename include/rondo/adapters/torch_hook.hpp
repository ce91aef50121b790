#pragma once

#include <rondo/adapters/torch.hpp>
#include <rondo/adapters/torch/tensors.hpp>
#include <rondo/adapters/torch/work.hpp>
#include <rondo/error.hpp>
#include <rondo/fused/clip.hpp>
#include <rondo/fused/finite.hpp>
#include <rondo/fused/sum_of_squares.hpp>
#include <rondo/gradient/compression/compressor.hpp>
#include <rondo/gradient/compression/named.hpp>
#include <rondo/ops.hpp>

#include <ATen/ATen.h>
#include <cmath>
#include <cstddef>
#include <exception>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// What a torch_hook does besides averaging; the same on all ranks.
struct torch_hook_options {
  std::string compression{};                                  ///< as named_compression has it; empty: none
  double max_norm = std::numeric_limits<double>::infinity();  ///< of the gradient of the whole model, after averaging
};

/// A communication hook for DistributedDataParallel: gradients are compressed on their way, or clipped to a global
/// norm, or both, and then divided, once. For gradients of float32. All ranks get the same bits.
///
/// With `max_norm` the buckets of a backward pass are complete when the last one is; the norm costs no pass of its own.
/// DistributedDataParallel cuts other buckets after its first backward pass; what a compression keeps is forgotten
/// then.
class torch_hook {
 public:
  using handle = torch_backend::handle;

  /// `backend` must outlive this, and be closed before.
  explicit torch_hook(torch_backend& backend, torch_hook_options options = {})
      : backend_(backend), options_(std::move(options)) {
    if (!(options_.max_norm > 0))
      throw invalid_argument("a hook clips gradients to a norm above 0: give it a max_norm");
    start_compression();
  }
  torch_hook(torch_hook const&) = delete;
  torch_hook& operator=(torch_hook const&) = delete;

  /// Bucket `number` of a backward pass, counted from 0; `last`: no other follows. In order, on every rank. The bucket
  /// is the value of the handle's future.
  handle reduce(at::Tensor const& bucket, std::size_t number, bool last) {
    detail::check_tensors("a hook", {bucket});
    if (bucket.scalar_type() != at::kFloat || !bucket.is_contiguous())
      throw invalid_argument(std::string("a hook takes gradients of float32 only, not of ") +
                             c10::toString(bucket.scalar_type()) + ": register none for this model");
    auto const work = c10::make_intrusive<detail::torch_work>(backend_.getRank(), c10d::OpType::ALLREDUCE,
                                                              std::vector<at::Tensor>{bucket});
    backend_.between_collectives([this, one = part{work, values_of(bucket)}, number, last](auto& ranks) {
      if (number == 0) begin();
      parts_.push_back(one);
      std::exception_ptr wrong;
      try {
        add_up(ranks, one.values, number);
      } catch (...) { wrong = std::current_exception(); }
      if (wrong || last || !clips()) finish(wrong);
    });
    return work;
  }

  /// The norm of the mean gradient of the last backward pass, before it was clipped; with `max_norm`.
  double norm() const noexcept { return norm_; }

  /// What compression has saved since buckets had these sizes.
  compression_statistics statistics() const {
    return compression_ ? compression_->statistics() : compression_statistics{};
  }

 private:
  /// A bucket that has been added up and not yet divided.
  struct part {
    c10::intrusive_ptr<detail::torch_work> work;
    std::span<float> values;
  };

  static std::span<float> values_of(at::Tensor const& bucket) {
    return {bucket.data_ptr<float>(), static_cast<std::size_t>(bucket.numel())};
  }

  bool clips() const noexcept { return std::isfinite(options_.max_norm); }

  void start_compression() {
    if (!options_.compression.empty()) compression_.emplace(options_.compression);
  }

  void begin() {
    if (!parts_.empty())
      finish(std::make_exception_ptr(error("a backward pass ended before its last bucket: make all of it")));
    squares_ = {};
  }

  template <transport X>
  void add_up(communicator<X>& ranks, std::span<float> values, std::size_t number) {
    if (compression_) {
      auto const [known, fresh] = sizes_.try_emplace(number, values.size());
      if (!fresh && known->second != values.size()) {
        sizes_ = {{number, values.size()}};
        start_compression();
      }
      compression_->all_reduce(ranks, number, values);
    } else {
      ranks.all_reduce(values, sum);
    }
    if (clips()) squares_.add(values);
  }

  /// Divides what has been added up, and completes its handles.
  void finish(std::exception_ptr const& wrong) {
    double divisor = backend_.getSize();
    if (clips() && !wrong) {
      double const squares = squares_.total() / divisor / divisor;
      norm_ = std::sqrt(squares);
      if (is_finite(squares)) divisor /= static_cast<double>(clip_factor(squares, options_.max_norm));
    }
    for (part const& p : std::exchange(parts_, {}))
      p.work->run([&] {
        if (wrong) std::rethrow_exception(wrong);
        for (float& value : p.values) value /= static_cast<float>(divisor);
      });
  }

  torch_backend& backend_;
  torch_hook_options options_;
  std::optional<named_compression> compression_;
  std::map<std::size_t, std::size_t> sizes_;  // of buckets that were compressed
  std::vector<part> parts_;
  sum_of_squares squares_;
  double norm_ = 0;
};

}  // namespace rondo::inline v0
