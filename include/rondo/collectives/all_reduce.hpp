#pragma once

#include <rondo/collectives/request.hpp>
#include <rondo/run/operands.hpp>

#include <cstddef>
#include <span>

namespace rondo::inline v0::collectives {

/// Every rank ends with the fold of all contributions.
template <class T, class Op>
struct all_reduce : symmetric {
  static constexpr collective kind = collective::all_reduce;
  static constexpr bool keeps_order = !is_commutative_v<Op>;
  static constexpr std::size_t wide_bytes = sizeof(typename op_traits<Op, T>::wide);  // of an element as it is folded

  std::span<T const> in;
  std::span<T> out;
  Op op;

  std::size_t bytes() const noexcept { return in.size_bytes(); }

  void prepare(run::job& j, rank_t, int) const {
    check_size("all_reduce", "output", out, in.size());
    check_apart("all_reduce", in, out);
    mark_operation<T, Op>(j, in.size());
    j.count = in.size();
    j.source = run::take_operands<T>(j, in, bytes_of(out), op);
    if constexpr (op_traits<Op, T>::widens) {
      j.home = j.scratch.data();
      run::give_result<T, Op>(j, j.home, out.data(), out.size());
    } else {
      j.home = bytes_of(out);
    }
    j.moves = j.source != j.home;
  }

  /// What a call needs besides whose contributions are folded all at once.
  void fold_at_once(run::job& j) const noexcept { run::fold_at_once<T, Op>(j); }
};

}  // namespace rondo::inline v0::collectives
