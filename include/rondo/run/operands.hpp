#pragma once

#include <rondo/fold.hpp>
#include <rondo/run/job.hpp>

#include <cstddef>
#include <span>

namespace rondo::inline v0::run {

/// Has the job fold by `kernel`.
inline void fold_by(job& j, reduction const& kernel) noexcept {
  j.math.element = kernel.element;
  j.math.fold = kernel.fold;
  j.math.fold_many = kernel.fold_many;
  j.math.op = kernel.op;
}

/// Fills in what `job` must know to fold T with op, which must outlive it, and returns where this rank's contribution
/// lies: `in` itself; `prepared` after the operation's prepare pass; or the job's scratch, in the wider type that the
/// operation needs, from which result() takes it back. `prepared` has room for all of `in`.
template <class T, class Op>
std::byte const* take_operands(job& j, std::span<T const> in, std::byte* prepared, Op const& op) {
  using traits = op_traits<Op, T>;
  using wide = typename traits::wide;
  reduction const kernel = [&] {
    detail::check_reduction<T, Op>();
    return make_reduction<wide>(op);
  }();
  fold_by(j, kernel);
  j.op = &op;
  auto const* const bytes = reinterpret_cast<std::byte const*>(in.data());
  if constexpr (traits::widens) {
    std::byte* const scratch = j.reserve(in.size() * sizeof(wide));
    detail::convert_range<wide, T>(scratch, bytes, in.size());
    return scratch;
  } else {
    if constexpr (traits::finishes) {
      j.math.context = &j;
      j.math.finish = [](void const* context, std::byte* data, std::size_t count) {
        auto const& owner = *static_cast<job const*>(context);
        detail::finish_range<T>(*static_cast<Op const*>(owner.op), data, data, count, owner.ranks);
      };
    }
    if constexpr (traits::prepares) {
      detail::prepare_range<T>(op, prepared, bytes, in.size());
      return prepared;
    }
    return bytes;
  }
}

/// Has the result of a wide sum, `count` elements at `from`, written to `to` when the call is done.
template <class T, class Op>
void give_result(job& j, std::byte const* from, T* to, std::size_t count) {
  j.wide = from;
  j.result = reinterpret_cast<std::byte*>(to);
  j.results = count;
  j.after = [](job const& owner) {
    detail::finish_range<T>(*static_cast<Op const*>(owner.op), owner.result, owner.wide, owner.results, owner.ranks);
  };
}

}  // namespace rondo::inline v0::run
