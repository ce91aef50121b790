#pragma once

#include <rondo/collectives/request.hpp>
#include <rondo/run/operands.hpp>

#include <cstddef>
#include <span>

namespace rondo::inline v0::collectives {

/// The root ends with the fold of all contributions. `out` is the root's; elsewhere it is empty.
template <class T, class Op>
struct reduce : rooted {
  static constexpr collective kind = collective::reduce;
  static constexpr bool keeps_order = !is_commutative_v<Op>;

  std::span<T const> in;
  std::span<T> out;
  Op op;

  std::size_t bytes() const noexcept { return in.size_bytes(); }

  void prepare(run::job& j, rank_t rank, int ranks) const {
    check_root("reduce", root(), ranks);
    if (rank == root()) check_size("reduce", "output", out, in.size());
    check_apart("reduce", in, out);
    mark_operation<T, Op>(j, in.size());
    j.mark.root = root();
    j.echo = true;
    j.count = in.size();
    // Sums of others pass through every rank; those that are not meant for it land beside its input.
    bool const wide = op_traits<Op, T>::widens;
    std::byte* const landing = rank == root() || wide ? bytes_of(out) : j.reserve(in.size_bytes());
    j.source = run::take_operands<T>(j, in, landing, op);
    j.home = wide ? j.scratch.data() : landing;
    j.moves = j.source != j.home;
    if constexpr (op_traits<Op, T>::widens)
      if (rank == root()) run::give_result<T, Op>(j, j.home, out.data(), out.size());
  }
};

}  // namespace rondo::inline v0::collectives
