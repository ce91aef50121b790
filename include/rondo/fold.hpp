#pragma once

#include <rondo/ops.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

namespace rondo::inline v0 {

/// An operation on elements of some type, its types erased: what an executor needs to know to fold bytes.
struct reduction {
  std::size_t element;  ///< bytes

  /// out[i] = op(a[i], b[i]) for `count` elements. Any alignment. `out` may be `a` or `b` itself, but not overlap them.
  void (*fold)(void const* op, std::byte* out, std::byte const* a, std::byte const* b, std::size_t count) noexcept;

  void const* op;  ///< first argument of fold; must outlive its calls

  void operator()(std::byte* out, std::byte const* a, std::byte const* b, std::size_t count) const noexcept {
    fold(op, out, a, b, count);
  }
};

namespace detail {

template <class T>
T load(std::byte const* from) noexcept {
  std::array<std::byte, sizeof(T)> bytes;  // T may have no default constructor
  std::memcpy(bytes.data(), from, sizeof(T));
  return std::bit_cast<T>(bytes);
}

template <class T>
void store(std::byte* to, T const& value) noexcept {
  std::memcpy(to, &value, sizeof(T));
}

/// Any NaN becomes the one quiet NaN. Which operand gives a NaN its sign and payload is up to the compiler, loop by
/// loop, and ranks that compute the same total must end with the same bits.
template <class T>
constexpr T one_nan(T const& value) noexcept {
  if constexpr (std::is_floating_point_v<T> || is_small_float<T>)
    return value == value ? value : std::numeric_limits<T>::quiet_NaN();
  else
    return value;
}

/// op(a, b), in float for the narrow floats where op takes floats: one rounding.
template <class T, class Op>
constexpr T combine(Op const& op, T const& a, T const& b) noexcept {
  using A = accumulator_t<T>;
  if constexpr (folds<Op, A>)
    return static_cast<T>(one_nan<A>(op(static_cast<A>(a), static_cast<A>(b))));
  else
    return one_nan(static_cast<T>(op(a, b)));
}

template <class T, class Op>
[[gnu::always_inline]] inline void fold_each(Op const& op, std::byte* out, std::byte const* a, std::byte const* b,
                                             std::size_t count) noexcept {
  for (std::size_t i = 0; i < count * sizeof(T); i += sizeof(T))
    store(out + i, combine(op, load<T>(a + i), load<T>(b + i)));
}

template <class T, class Op>
void fold_range(void const* op, std::byte* out, std::byte const* a, std::byte const* b, std::size_t count) noexcept {
  Op const own = *static_cast<Op const*>(op);  // stores to out cannot change it, as far as the compiler knows
  // The same loop three times, because a compiler that sees two equal pointers vectorises, and one that has to check
  // them for overlap at run time does not.
  if (out == a) return fold_each<T>(own, out, out, b, count);
  if (out == b) return fold_each<T>(own, out, a, out, count);
  fold_each<T>(own, out, a, b, count);
}

template <class Out, class In, class F>
[[gnu::always_inline]] inline void map_each(std::byte* out, std::byte const* in, std::size_t count,
                                            F const& function) noexcept {
  for (std::size_t i = 0; i < count; ++i) store<Out>(out + i * sizeof(Out), function(load<In>(in + i * sizeof(In))));
}

/// out[i] = function(in[i]); `out` may be `in` if Out is not wider than In.
template <class Out, class In, class F>
void map_range(std::byte* out, std::byte const* in, std::size_t count, F const& function) noexcept {
  if (out == in) return map_each<Out, In>(out, out, count, function);  // as in fold_range
  map_each<Out, In>(out, in, count, function);
}

/// out[i] = Out(in[i]): from T to a wider type that it is folded in, and back.
template <class Out, class In>
void convert_range(std::byte* out, std::byte const* in, std::size_t count) noexcept {
  map_range<Out, In>(out, in, count, [](In const& value) noexcept { return static_cast<Out>(value); });
}

/// out[i] = op.prepare(in[i]); for operations whose traits say that they prepare.
template <class T, class Op>
void prepare_range(Op const& op, std::byte* out, std::byte const* in, std::size_t count) noexcept {
  map_range<T, T>(out, in, count, [own = op](T const& value) noexcept { return own.prepare(value); });
}

/// out[i] = op.finish(in[i], ranks), from the wide type of (Op, T) to T; for operations whose traits say that they
/// finish.
template <class T, class Op>
void finish_range(Op const& op, std::byte* out, std::byte const* in, std::size_t count, int ranks) noexcept {
  using wide = typename op_traits<Op, T>::wide;
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
  return {sizeof(T), detail::fold_range<T, Op>, &op};
}

}  // namespace rondo::inline v0
