#pragma once

#include <cstddef>

namespace rondo::inline v0 {

/// One training step of a synchronizer or a sharded_optimizer, between begin() and finish().
///
/// A step that is dropped without finish() leaves the other ranks waiting, and its owner cannot begin another one.
template <class Owner>
class [[nodiscard]] gradient_step {
 public:
  explicit gradient_step(Owner& owner) noexcept : owner_(&owner) {}
  gradient_step(gradient_step&&) noexcept = default;
  gradient_step& operator=(gradient_step&&) noexcept = default;

  /// The gradient of parameter number `id` is complete, and must not be touched before finish(). Once in a step for
  /// each, in any order, from any thread, before finish() is called. Copies the gradient into its bucket where it does
  /// not lie there; a bucket that is full and whose predecessors are, too, is under way at once.
  void ready(std::size_t id) { owner_->ready(id); }

  /// Blocks until all gradients are reduced, see the owner. Every rank must call. Throws what went wrong in
  /// communication, and the same invalid_argument on every rank if a gradient did not come on one of them.
  auto finish() { return owner_->finish(); }

 private:
  Owner* owner_;
};

}  // namespace rondo::inline v0
