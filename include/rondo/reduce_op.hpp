#pragma once

#include <rondo/config.hpp>
#include <rondo/element.hpp>

#include <concepts>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>

namespace rondo::inline v0 {

namespace detail {

template <class Op, class T>
concept folds = std::is_nothrow_invocable_r_v<T, Op const&, T const&, T const&>;

template <class Op>
concept says_commutative = requires {
  { Op::commutative } -> std::convertible_to<bool>;
};

template <class Op>
concept bitwise = requires {
  requires Op::bitwise;
};

template <class Op>
concept named = requires {
  { Op::name } -> std::convertible_to<std::string_view>;
};

}  // namespace detail

/// An operation that merges two elements: op(a, b), without exceptions, associative up to rounding.
///
/// On 8- and 16-bit floats it is called with floats where it takes them, else with the type itself. `a` is always the
/// contribution of lower ranks, and only an operation that is commutative may see them exchanged.
template <class Op, class T>
concept reduce_op = element<T> && std::copy_constructible<Op> &&
    (detail::folds<Op, accumulator_t<T>> || detail::folds<Op, T>);

/// Whether op(a, b) == op(b, a), bit for bit: `Op::commutative` where it exists. Other callables keep the order of
/// ranks.
template <class Op>
inline constexpr bool is_commutative_v = false;
template <detail::says_commutative Op>
inline constexpr bool is_commutative_v<Op> = Op::commutative;

/// A callable that is declared to be commutative.
template <class F>
struct commutative_op {
  static constexpr bool commutative = true;

  template <class A, class B>
  requires std::invocable<F const&, A const&, B const&> RONDO_HD constexpr auto operator()(A const& a, B const& b) const
      noexcept(noexcept(function(a, b))) {
    return function(a, b);
  }

  F function;
};

/// Declares that function(a, b) and function(b, a) are the same bits, which opens it to algorithms that reorder ranks.
template <class F>
constexpr commutative_op<F> commutative(F function) {
  return {std::move(function)};
}

/// What a collective has to do around the folding of T with Op.
template <class Op, class T>
struct op_traits {
 private:
  template <class O>
  struct wide_of {
    using type = T;
  };
  template <class O>
    requires requires { typename O::template wide_t<T>; }
  struct wide_of<O> {
    using type = typename O::template wide_t<T>;
  };

 public:
  /// The type that contributions must be folded and partial results must travel in for the result to be right.
  using wide = typename wide_of<Op>::type;
  static constexpr bool widens = !std::same_as<wide, T>;

  /// The type to fold in where it costs no bytes on the wire: one rounding at the end instead of one a rank.
  using accumulator = std::conditional_t<widens, wide, accumulator_t<T>>;

  /// Each rank's contribution is replaced by op.prepare(contribution) before it is folded.
  static constexpr bool prepares = requires(Op const& op, T const& value) { op.prepare(value); };

  /// The folded value becomes the result by op.template finish<T>(value, ranks), once.
  static constexpr bool finishes = requires(Op const& op, wide const& value, int ranks) {
    op.template finish<T>(value, ranks);
  };
};

/// A name of at most 15 characters, the same for the same operation on every rank: "sum", …, else the name of the class
/// or "lambda_" and a hash: ranks must be built alike.
template <class Op>
std::string_view op_name() {
  if constexpr (detail::named<Op>) {
    return Op::name;
  } else if constexpr (detail::spelled<Op>().find("lambda") != std::string_view::npos) {
    // Only the mangled name tells two lambdas of one function apart.
    static detail::short_name const name("lambda", typeid(Op).name());
    return name.view();
  } else {
    return type_name<Op>();
  }
}

namespace detail {

/// Refuses what cannot be reduced, in a sentence. Every collective that folds asks this first.
template <class T, class Op>
consteval void check_reduction() {
  using A = accumulator_t<T>;
  static_assert(element<T>,
                "rondo moves elements as bytes: make the type trivially copyable, or send plain values instead");
  static_assert(sizeof(T) <= 16384,
                "elements are folded while they arrive and have to fit a piece of the stream: reduce "
                "the values that they are made of");
  static_assert(!bitwise<Op> || std::integral<T>,
                "bit_and, bit_or and bit_xor need integers: view the buffer as unsigned integers, or use logical_and, "
                "logical_or or logical_xor");
  static_assert(std::invocable<Op const&, A const&, A const&> || std::invocable<Op const&, T const&, T const&>,
                "the operation does not take two elements: give it a const call operator (T, T) that returns T");
  static_assert(!(std::is_invocable_r_v<A, Op const&, A const&, A const&> ||
                  std::is_invocable_r_v<T, Op const&, T const&, T const&>) ||
                    folds<Op, A> || folds<Op, T>,
                "a reduction cannot stop half-way through a buffer: declare the operation noexcept");
  static_assert(std::is_invocable_r_v<A, Op const&, A const&, A const&> ||
                    std::is_invocable_r_v<T, Op const&, T const&, T const&>,
                "the operation does not return an element: make its result convertible to the element type");
}

}  // namespace detail

}  // namespace rondo::inline v0
