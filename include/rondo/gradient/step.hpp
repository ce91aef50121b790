#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace rondo::inline v0 {

/// One training step of a synchronizer or a sharded_optimizer, between begin() and finish().
///
/// A step that is dropped before finish() has returned, as by an exception, ends its owner on every rank: the others'
/// finish() throws error, which names this rank.
template <class Owner>
class [[nodiscard]] gradient_step {
 public:
  gradient_step(Owner& owner, std::uint64_t number) noexcept : owner_(&owner), number_(number) {}
  gradient_step(gradient_step&& other) noexcept
      : owner_(std::exchange(other.owner_, nullptr)), number_(other.number_) {}
  gradient_step& operator=(gradient_step&&) = delete;
  ~gradient_step() {
    if (owner_) owner_->abandon(number_);
  }

  /// The gradient of parameter number `id` is complete, and must not be touched before finish(). Once in a step for
  /// each, in any order, from any thread, before finish() is called. Copies the gradient into its bucket where it does
  /// not lie there; a bucket that is full and whose predecessors are, too, is under way at once.
  void ready(std::size_t id) { owner_->ready(id); }

  /// Blocks until all gradients are reduced, see the owner. Every rank must call. Throws what went wrong in
  /// communication, and the same invalid_argument on every rank if a gradient did not come on one of them.
  auto finish() { return owner_->finish(); }

 private:
  Owner* owner_;
  std::uint64_t number_;
};

}  // namespace rondo::inline v0
