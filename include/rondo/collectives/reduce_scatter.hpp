#pragma once

#include <rondo/collectives/request.hpp>
#include <rondo/run/operands.hpp>

#include <cstddef>
#include <span>

namespace rondo::inline v0::collectives {

/// Rank r ends with block r of the fold of all contributions. `out` may be block r of `in`.
template <class T, class Op>
struct reduce_scatter : symmetric {
  static constexpr collective kind = collective::reduce_scatter;
  static constexpr bool keeps_order = !is_commutative_v<Op>;

  std::span<T const> in;
  std::span<T> out;
  blocks counts;
  Op op;

  std::size_t bytes() const noexcept { return in.size_bytes(); }

  void prepare(run::job& j, rank_t rank, int ranks) const {
    counts.check("reduce_scatter", ranks);
    check_size("reduce_scatter", "input", in, counts.sum(ranks));
    check_size("reduce_scatter", "output", out, counts[static_cast<std::size_t>(rank)]);
    check_place<T>("reduce_scatter", in, counts.before(rank), out);
    mark_operation<T, Op>(j, in.size());
    j.mark.shape = counts.shape();
    bool const wide = op_traits<Op, T>::widens;
    std::byte* const landing = wide ? nullptr : j.reserve(in.size_bytes());
    std::byte const* const source = run::take_operands<T>(j, in, landing, op);
    std::byte* const others = wide ? j.scratch.data() : landing;
    j.moves = true;
    counts.each(ranks, [&](std::size_t i, std::size_t before, std::size_t count) {
      bool const mine = i == static_cast<std::size_t>(rank);
      std::size_t const offset = before * j.math.element;
      j.chunks.push_back({source + offset, mine && !wide ? bytes_of(out) : others + offset, count});
      if constexpr (op_traits<Op, T>::widens)
        if (mine) run::give_result<T, Op>(j, others + offset, out.data(), count);
    });
  }
};

}  // namespace rondo::inline v0::collectives
