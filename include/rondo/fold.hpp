#pragma once

#include <rondo/detail/fold_tree.hpp>
#include <rondo/detail/map_kernel.hpp>
#include <rondo/ops.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

namespace rondo::inline v0 {

/// An operation on elements of some type, its types erased: what an executor needs to know to fold bytes.
struct reduction {
  std::size_t element;  ///< bytes

  /// out[i] = op(a[i], b[i]) for `count` elements. Any alignment. `out` may be `a` or `b` itself, but not overlap them.
  void (*fold)(void const* op, std::byte* out, std::byte const* a, std::byte const* b, std::size_t count) noexcept;

  /// The same for any number of sources, in the canonical tree (see recursive_doubling), at all `outs`. Each out is one
  /// of the sources or overlaps none; every source is read before anything is written over it.
  void (*fold_many)(void const* op, std::span<std::byte* const> outs, std::span<std::byte const* const> sources,
                    std::size_t count) noexcept;

  void const* op;  ///< first argument of both; must outlive their calls

  void operator()(std::byte* out, std::byte const* a, std::byte const* b, std::size_t count) const noexcept {
    fold(op, out, a, b, count);
  }
};

namespace detail {

template <class T, class Op>
void fold_range(void const* op, std::byte* out, std::byte const* a, std::byte const* b, std::size_t count) noexcept {
  fold_two<T>(*static_cast<Op const*>(op), out, a, b, count * sizeof(T));
}

template <class T, class Op>
void fold_sources(void const* op, std::span<std::byte* const> outs, std::span<std::byte const* const> sources,
                  std::size_t count) noexcept {
  auto const& own = *static_cast<Op const*>(op);
  if (sources.size() == 2 && outs.size() == 1)  // no tree to speak of
    return fold_two<T>(own, outs[0], sources[0], sources[1], count * sizeof(T));
  fold_tree<T, Op>(best_instruction_set(), own)(outs, sources, count);
}

/// Operations whose fold is a sum: they share its code.
template <class Op>
inline constexpr bool adds = false;
template <>
inline constexpr bool adds<avg_op> = true;
template <class F>
inline constexpr bool adds<premul_sum_op<F>> = true;

/// Operations that give signed and unsigned integers the same bits: these share their code.
template <class Op, class... Others>
inline constexpr bool one_of = (std::is_same_v<Op, Others> || ...);
template <class Op>
inline constexpr bool ignores_sign =
    one_of<Op, sum_op, prod_op, bit_and_op, bit_or_op, bit_xor_op, logical_and_op, logical_or_op, logical_xor_op>;

template <class T, class Op>
struct folded_as {
  using op = std::conditional_t<adds<Op>, sum_op, Op>;
  using type = typename std::conditional_t<std::signed_integral<T> && ignores_sign<op>, std::make_unsigned<T>,
                                           std::type_identity<T>>::type;
};

/// The function that folds two sources of T with Op, and the one that folds any number of them.
template <class T, class Op>
inline constexpr auto two_fold = &fold_range<typename folded_as<T, Op>::type, typename folded_as<T, Op>::op>;
template <class T, class Op>
inline constexpr auto many_fold = &fold_sources<typename folded_as<T, Op>::type, typename folded_as<T, Op>::op>;

/// Their first argument.
template <class Op>
void const* fold_argument(Op const& op) noexcept {
  if constexpr (adds<Op>) return &sum;
  return &op;
}

/// Numbers that are computed with in float.
template <class T>
concept in_float = std::is_same_v<T, float> || is_small_float<T>;

/// out[i] = function(in[i]); `out` may be `in` if Out is not wider than In.
template <class Out, class In, class F>
void map_range(std::byte* out, std::byte const* in, std::size_t count, F const& function) noexcept {
  if constexpr (in_float<Out> && in_float<In> && std::is_invocable_r_v<float, F const&, float>)
    map_in_float<Out, In>(best_instruction_set(), function, out, in, count);
  else
    for (std::size_t i = 0; i < count; ++i) store<Out>(out + i * sizeof(Out), function(load<In>(in + i * sizeof(In))));
}

/// out[i] = Out(in[i]): from T to a wider type that it is folded in, and back.
template <class Out, class In>
void convert_range(std::byte* out, std::byte const* in, std::size_t count) noexcept {
  if constexpr (in_float<Out> && in_float<In>)
    map_range<Out, In>(out, in, count, [](float value) noexcept { return value; });
  else
    map_range<Out, In>(out, in, count, [](In const& value) noexcept { return static_cast<Out>(value); });
}

template <class Op>
concept prepares_in_float = requires(Op const& op) {
  { op.prepare(0.0F) } -> std::same_as<float>;
};

/// out[i] = op.prepare(in[i]), in float where op takes floats; for operations whose traits say that they prepare.
template <class T, class Op>
void prepare_range(Op const& op, std::byte* out, std::byte const* in, std::size_t count) noexcept {
  if constexpr (in_float<T> && prepares_in_float<Op>)
    map_range<T, T>(out, in, count, [own = op](float value) noexcept { return own.prepare(value); });
  else
    map_range<T, T>(out, in, count, [own = op](T const& value) noexcept { return own.prepare(value); });
}

/// out[i] = op.finish(in[i], ranks), from the wide type of (Op, T) to T; for operations whose traits say that they
/// finish.
template <class T, class Op>
void finish_range(Op const& op, std::byte* out, std::byte const* in, std::size_t count, int ranks) noexcept {
  using wide = typename op_traits<Op, T>::wide;
  if constexpr (in_float<T> && std::is_same_v<Op, avg_op>)
    map_range<T, float>(out, in, count, [ranks](float total) noexcept { return avg.finish<float>(total, ranks); });
  else
    map_range<T, wide>(out, in, count,
                       [own = op, ranks](wide const& value) noexcept { return own.template finish<T>(value, ranks); });
}

/// out[i] = factor * in[i].
template <class T, class F>
void scale_range(F factor, std::byte* out, std::byte const* in, std::size_t count) noexcept {
  prepare_range<T>(premul_sum(factor), out, in, count);
}

}  // namespace detail

/// The reduction of T with op, which must outlive it. Refuses at compile time, in a sentence, what cannot be reduced.
template <class T, class Op>
reduction make_reduction(Op const& op) noexcept {
  detail::check_reduction<T, Op>();
  return {sizeof(T), detail::two_fold<T, Op>, detail::many_fold<T, Op>, detail::fold_argument(op)};
}

}  // namespace rondo::inline v0
