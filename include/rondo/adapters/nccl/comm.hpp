#pragma once

#include <rondo/adapters/nccl/device_memory.hpp>
#include <rondo/adapters/nccl/elements.hpp>
#include <rondo/adapters/nccl/status.hpp>
#include <rondo/adapters/nccl/types.h>
#include <rondo/group.hpp>
#include <rondo/options.hpp>
#include <rondo/reconnect.hpp>
#include <rondo/run/dispatcher.hpp>
#include <rondo/transports/any_transport.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rondo::inline v0::nccl {

/// What an ncclComm_t stands for: one rank of a communicator. Thread-safe.
class comm {
 public:
  /// Every rank of the group must make one; blocks until all have.
  comm(std::shared_ptr<group> ranks, any_transport transport, int device, communicator_options const& options)
      : ranks_(std::move(ranks)), calls_(ranks_, std::move(transport), options), device_(device) {}

  rank_t rank() const noexcept { return ranks_->rank(); }
  int size() const noexcept { return ranks_->size(); }
  int device() const noexcept { return device_; }
  run::dispatcher<any_transport>& calls() noexcept { return calls_; }
  staging_pool& staging() noexcept { return staging_; }

  /// The ranks of the same color >= 0, by (key, rank); nothing for a negative one. Every rank must call; blocks until
  /// all have.
  std::shared_ptr<comm> split(int color, int key) {
    auto const deadline = group::clock::now() + calls_.options().deadline;
    auto part = ranks_->split(color, key, deadline);
    if (!part) return nullptr;
    auto link = rondo::reconnect(calls_.transport(), part, deadline);
    return std::make_shared<comm>(std::move(part), std::move(link), device_, calls_.options());
  }

  /// Ends what is under way on all ranks, with an error that names this one.
  void abort() noexcept {
    ranks_->report({failure::kind::other, rank(), "rank " + std::to_string(rank()) + " aborted the communicator"});
  }

  /// From now on calls are refused.
  void finalize() noexcept { finalized_.store(true, std::memory_order_relaxed); }
  void require_open() const {
    require(!finalized_.load(std::memory_order_relaxed), ncclInvalidUsage,
            "the communicator was finalized: call nothing but ncclCommDestroy on it, or finalize it later");
  }

  /// What has made the communicator unusable, if anything has: known without a call, soon after a rank has died.
  status health() const {
    if (!ranks_->failed()) return {};
    try {
      ranks_->verdict().raise();
    } catch (...) { return status_of_exception(); }
  }

  /// The operation that a number means to calls on elements of `type`. Throws refusal for one that it does not have.
  operation find(ncclRedOp_t op, ncclDataType_t type) const {
    if (is_builtin(op)) return {op};
    std::scoped_lock const lock(mutex_);
    auto const& made = find_made(op);
    if (made.type != type)
      throw refusal(ncclInvalidArgument, "the operation " + std::to_string(op) + " was made for ncclDataType_t " +
                                             std::to_string(made.type) + ", but the call has " + std::to_string(type) +
                                             ": make one with ncclRedOpCreatePreMulSum for every type");
    return {ncclNumOps, made.at ? fetch(made.type, made.at) : made.kept};
  }

  /// A sum of contributions times *scalar, which is read now, or by each call if it `stays`.
  ncclRedOp_t make_premul_sum(ncclDataType_t type, void const* scalar, bool stays) {
    premul made{type, stays ? scalar : nullptr, stays ? factor{} : factor::read(type, scalar)};
    std::scoped_lock const lock(mutex_);
    std::size_t i = 0;
    while (i < made_.size() && made_[i]) ++i;
    if (i == made_.size()) made_.emplace_back();
    made_[i] = made;
    return static_cast<ncclRedOp_t>(ncclNumOps + static_cast<int>(i));
  }

  void destroy_op(ncclRedOp_t op) {
    std::scoped_lock const lock(mutex_);
    require(!is_builtin(op), ncclInvalidArgument,
            "ncclRedOpDestroy was given one of NCCL's own operations: destroy only what ncclRedOpCreatePreMulSum made");
    (void)find_made(op);
    made_[static_cast<std::size_t>(op) - ncclNumOps].reset();
  }

  /// The last error of a call on this communicator.
  void remember(status const& why) {
    std::scoped_lock const lock(mutex_);
    last_ = why;
  }
  status last() const {
    std::scoped_lock const lock(mutex_);
    return last_;
  }

 private:
  struct premul {
    ncclDataType_t type;
    void const* at;  ///< where every call reads the factor; null: it is kept
    factor kept;
  };

  static bool is_builtin(ncclRedOp_t op) noexcept { return static_cast<unsigned>(op) < ncclNumOps; }

  /// Throws refusal for a number that this communicator has not given out.
  premul const& find_made(ncclRedOp_t op) const {
    auto const i = static_cast<std::size_t>(static_cast<unsigned>(op) - ncclNumOps);
    if (i >= made_.size() || !made_[i])
      throw refusal(ncclInvalidArgument,
                    "this communicator has no operation " + std::to_string(static_cast<int>(op)) +
                        ": pass one of ncclSum to ncclAvg, or what "
                        "ncclRedOpCreatePreMulSum made for it and ncclRedOpDestroy did not destroy");
    return *made_[i];
  }

  static factor fetch(ncclDataType_t type, void const* at) {
    if (!on_device(at)) return factor::read(type, at);
    factor f{.type = type};
    devices->copy(f.bytes.data(), at, size_of(type), nullptr);
    devices->wait(nullptr);
    return f;
  }

  std::shared_ptr<group> ranks_;
  staging_pool staging_;
  run::dispatcher<any_transport> calls_;
  int device_;
  std::atomic<bool> finalized_{false};
  mutable std::mutex mutex_;
  std::vector<std::optional<premul>> made_;
  status last_;
};

}  // namespace rondo::inline v0::nccl
