#pragma once

#include <rondo/detail/host_memory.hpp>
#include <rondo/fold.hpp>
#include <rondo/run/job.hpp>

#include <cstddef>
#include <span>

namespace rondo::inline v0::run {

/// Has the job fold two T with op, which must outlive it.
template <class T, class Op>
void fold_by(job& j, Op const& op) noexcept {
  j.math.element = sizeof(T);
  j.math.fold = detail::two_fold<T, Op>;
  j.math.op = detail::fold_argument(op);
}

/// Fills in what `job` must know to fold T with op, which must outlive it, and returns where this rank's contribution
/// lies: `in` itself; `prepared` after the operation's prepare pass; or the job's scratch, in the wider type that the
/// operation needs, from which result() takes it back. `prepared` has room for all of `in`.
template <class T, class Op>
std::byte const* take_operands(job& j, std::span<T const> in, std::byte* prepared, Op const& op) {
  using traits = op_traits<Op, T>;
  using wide = typename traits::wide;
  detail::check_reduction<T, Op>();
  fold_by<wide>(j, op);
  j.op = &op;
  auto const* const bytes = reinterpret_cast<std::byte const*>(in.data());
  detail::check_host_memory(bytes, in.size_bytes());
  if constexpr (traits::widens) {
    std::byte* const scratch = j.reserve(in.size() * sizeof(wide));
    detail::convert_range<wide, T>(scratch, bytes, in.size());
    return scratch;
  } else {
    detail::check_host_memory(prepared, in.size_bytes());
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

/// Fills in what `job` must know besides to fold any number of sources at once.
template <class T, class Op>
void fold_at_once(job& j) noexcept {
  j.math.fold_many = detail::many_fold<typename op_traits<Op, T>::wide, Op>;
}

/// Has the result of a wide sum, `count` elements at `from`, written to `to` when the call is done.
template <class T, class Op>
void give_result(job& j, std::byte const* from, T* to, std::size_t count) {
  detail::check_host_memory(reinterpret_cast<std::byte const*>(to), count * sizeof(T));
  j.wide = from;
  j.result = reinterpret_cast<std::byte*>(to);
  j.results = count;
  j.after = [](job const& owner) {
    detail::finish_range<T>(*static_cast<Op const*>(owner.op), owner.result, owner.wide, owner.results, owner.ranks);
  };
}

}  // namespace rondo::inline v0::run
