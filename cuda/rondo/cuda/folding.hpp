#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/pack.hpp>
#include <rondo/detail/combine.hpp>
#include <rondo/ops.hpp>
#include <rondo/reduce_op.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace rondo::inline v0::device {

/// The type that kernels fold contributions of T in unless told otherwise: float for 8- and 16-bit floats, so that the
/// result is rounded once; the wider type that the operation asks for; else T itself.
template <class T, class Op>
using accumulator_t =
    std::conditional_t<op_traits<Op, T>::widens || rondo::detail::folds<Op, typename op_traits<Op, T>::accumulator>,
                       typename op_traits<Op, T>::accumulator, T>;

/// What happens to an element between the contributions and the epilogue.
///
/// Every element is folded in the canonical tree (see recursive_doubling), so all ranks get the same bits from every
/// kernel that folds all contributions at once. They are those of the host: of an `ordered` sum where the accumulator
/// is T, which rounds each partial result; of an average where it is float.
template <int Ranks, class T, class Op, class Accumulator>
struct folding {
  static_assert((rondo::detail::check_reduction<T, Op>(), true));
  static_assert(std::same_as<Accumulator, T> || !op_traits<Op, T>::widens ||
                    std::same_as<Accumulator, typename op_traits<Op, T>::wide>,
                "the operation needs a wider type: leave the accumulator to it");

  /// What the epilogue gets: not rounded yet where T is narrower than the accumulator.
  using value_type = std::conditional_t<rondo::detail::is_small_float<T>, Accumulator, T>;

  Op op;

  /// This rank's contribution.
  template <std::size_t Count>
  RONDO_HD pack<T, Count> prepare(pack<T, Count> x) const noexcept {
    if constexpr (op_traits<Op, T>::prepares) {
      using A = rondo::accumulator_t<T>;
      for (T& value : x.values) value = static_cast<T>(op.prepare(static_cast<A>(value)));
    }
    return x;
  }

  /// The folded value as what the epilogue gets.
  RONDO_HD value_type finish(Accumulator const& folded) const noexcept {
    if constexpr (op_traits<Op, T>::finishes)
      return op.template finish<value_type>(folded, Ranks);
    else
      return static_cast<value_type>(folded);
  }

  /// Element j of all packs, in the order of ranks.
  template <std::size_t Count>
  RONDO_HD value_type operator()(pack<T, Count> const (&x)[Ranks], std::size_t j) const noexcept {
    Accumulator a[Ranks];
    for (int r = 0; r < Ranks; ++r) a[r] = static_cast<Accumulator>(x[r][j]);
    rondo::detail::fold_elements<Ranks>(op, a);
    return finish(a[0]);
  }
};

/// The epilogue that leaves everything as it is.
struct keep {
  template <class A>
  RONDO_HD constexpr A const& operator()(std::size_t, A const& value) const noexcept {
    return value;
  }
};

/// Applies an epilogue to an element: epilogue(context, i, value) if it takes a context, as those do that tell other
/// threads something, else epilogue(i, value). The result is rounded to Out.
template <class Out, class Context, class Epilogue, class A>
RONDO_HD Out apply(Context& context, Epilogue const& epilogue, std::size_t i, A const& value) noexcept {
  if constexpr (std::invocable<Epilogue const&, Context&, std::size_t, A const&>)
    return static_cast<Out>(epilogue(context, i, value));
  else
    return static_cast<Out>(epilogue(i, value));
}

/// The pack of results whose first element is number `first`; an epilogue sees the elements before `count` only.
template <class Out, class Context, class Fold, class Epilogue, class T, std::size_t Count, std::size_t Ranks>
RONDO_HD pack<Out, Count> reduce(Context& context, Fold const& fold, Epilogue const& epilogue,
                                 pack<T, Count> const (&x)[Ranks], std::size_t first, std::size_t count) noexcept {
  pack<Out, Count> y{};
  unrolled<Count>([&](std::size_t j) {
    if (first + j < count) y.values[j] = apply<Out>(context, epilogue, first + j, fold(x, j));
  });
  return y;
}

}  // namespace rondo::inline v0::device
