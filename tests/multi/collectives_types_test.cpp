#include "collectives.hpp"

#include <cmath>
#include <limits>
#include <tuple>

// Every type with every operation, against a plain loop over the contributions; and the errors of floating point sums
// against a bound.

namespace {

using namespace collectives_test;

template <class T>
constexpr bool integral = std::is_integral_v<T>;

/// Small whole numbers and powers of two: sums and products of up to 8 of them are exact in every float, whatever the
/// order. Integers take all their values, because they wrap.
template <class T>
T small(rank_t r, std::size_t i) {
  std::uint64_t const x = mixed(i * 8 + static_cast<std::uint64_t>(r));
  if constexpr (integral<T>)
    return static_cast<T>(x);
  else
    return static_cast<T>(static_cast<float>(static_cast<int>(x % 3) - 1));
}
template <class T>
T power(rank_t r, std::size_t i) {
  std::uint64_t const x = mixed(i * 8 + static_cast<std::uint64_t>(r));
  if constexpr (integral<T>)
    return static_cast<T>(x);
  else
    return static_cast<T>(std::array{0.5F, 1.0F, 2.0F, -1.0F}[x % 4]);
}
/// Anything finite, but no negative zero: which zero is the lesser is tested elsewhere.
template <class T>
T any(rank_t r, std::size_t i) {
  std::uint64_t const x = mixed(i * 8 + static_cast<std::uint64_t>(r));
  if constexpr (integral<T>)
    return static_cast<T>(x);
  else {
    T const value(std::ldexp(static_cast<float>(x % 2047) - 1023.0F, static_cast<int>(x >> 60) - 20));
    return value == 0 ? static_cast<T>(0.0F) : value;
  }
}

// Functions are passed as values of few types: the loops around them are compiled once for a type, not for every
// operation.

/// What rank `r` contributes as element `i`.
template <class T>
using contribution = std::function<T(rank_t, std::size_t)>;
/// What `n` ranks should have got as element `i`.
template <class T>
using result = std::function<T(int, std::size_t)>;
template <class T>
using reducing_call = std::function<void(comm&, std::span<T const> in, std::span<T> out, algorithm)>;

/// Makes the call for 3 and 4 ranks, by several algorithms, and compares every bit on every rank.
template <class T>
void compare_calls(std::string_view op, reducing_call<T> const& call, contribution<T> const& make,
                   result<T> const& expected) {
  for (int const n : {3, 4}) {
    on_ranks(medium::in_process, n, [&](comm& c) {
      for (algorithm const how :
           {algorithm::ring, algorithm::recursive_doubling, algorithm::mixed_radix, algorithm::double_tree}) {
        for (std::size_t const count : {std::size_t{1}, std::size_t{333}, std::size_t{20000} / sizeof(T)}) {
          guarded<T> in(count, 1), out(count, 0);
          in.fill([&](std::size_t i) { return make(c.rank(), i); });
          call(c, in.all(), out.all(), how);
          EXPECT_EQ(out.wrong([&](std::size_t i) { return expected(n, i); }), "")
              << type_name<T>() << " " << op << " by " << to_string(how) << " on rank " << c.rank() << " of " << n
              << ", count " << count;
          EXPECT_EQ(in.wrong([&](std::size_t i) { return make(c.rank(), i); }), "");
        }
      }
    });
  }
}

template <class T, class Op>
void compare(Op const& op, contribution<T> const& make, result<T> const& expected, Op const* of_others = nullptr) {
  auto const call = [&](comm& c, std::span<T const> in, std::span<T> out, algorithm how) {
    all_reduce<T>(c, in, out, of_others && c.rank() != 0 ? *of_others : op, {.algorithm = how});
  };
  compare_calls<T>(op_name<Op>(), call, make, expected);
}

/// The contributions from rank 0 on, folded one after the other.
template <class T>
result<T> one_by_one(contribution<T> const& make, std::function<T(T, T)> const& f) {
  return [=](int n, std::size_t i) {
    T total = make(0, i);
    for (rank_t r = 1; r < n; ++r) total = f(total, make(r, i));
    return total;
  };
}

/// What T computes in without overflow or rounding for the values above.
template <class T>
using exact = std::conditional_t<integral<T>, std::uint64_t, double>;

template <class T>
T back(exact<T> x) {
  if constexpr (integral<T>)
    return static_cast<T>(x);
  else
    return static_cast<T>(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(x));
}

template <class T>
exact<T> up(T x) {
  if constexpr (integral<T>)
    return static_cast<exact<T>>(x);
  else
    return static_cast<double>(x);
}

template <class T>
class every_type : public testing::Test {};
using types = testing::Types<float, double, float16, bfloat16, float8_e4m3, float8_e5m2, std::int8_t, std::uint8_t,
                             std::int16_t, std::uint16_t, std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;

struct type_names {
  template <class T>
  static std::string GetName(int) {
    return std::string(type_name<T>());
  }
};
TYPED_TEST_SUITE(every_type, types, type_names);

TYPED_TEST(every_type, sums_exactly_and_integers_wrap) {
  using T = TypeParam;
  compare<T>(sum, small<T>, one_by_one<T>(small<T>, [](T a, T b) { return back<T>(up(a) + up(b)); }));
}

TYPED_TEST(every_type, multiplies_exactly_and_integers_wrap) {
  using T = TypeParam;
  compare<T>(prod, power<T>, one_by_one<T>(power<T>, [](T a, T b) { return back<T>(up(a) * up(b)); }));
}

TYPED_TEST(every_type, finds_the_least_and_the_greatest) {
  using T = TypeParam;
  compare<T>(min, any<T>, one_by_one<T>(any<T>, [](T a, T b) { return b < a ? b : a; }));
  compare<T>(max, any<T>, one_by_one<T>(any<T>, [](T a, T b) { return a < b ? b : a; }));
}

/// The sum is exact; the quotient of small whole numbers is rounded once.
TYPED_TEST(every_type, averages_with_one_rounding_and_integers_truncate) {
  using T = TypeParam;
  compare<T>(avg, small<T>, [](int n, std::size_t i) {
    if constexpr (integral<T>) {
      __extension__ __int128 total = 0;
      for (rank_t r = 0; r < n; ++r) total += small<T>(r, i);
      return static_cast<T>(total / n);
    } else {
      double total = 0;
      for (rank_t r = 0; r < n; ++r) total += static_cast<double>(small<T>(r, i));
      return back<T>(total / n);
    }
  });
}

/// Rank 0 brings another factor than the others. -1 and 2 keep the floats exact.
TYPED_TEST(every_type, scales_each_contribution_by_the_factor_of_its_rank) {
  using T = TypeParam;
  using F = factor_of<T>;
  auto const first = premul_sum(static_cast<F>(integral<T> ? 3 : -1)), others = premul_sum(static_cast<F>(2));
  compare<T>(
      first, small<T>,
      [&](int n, std::size_t i) {
        exact<T> total{};
        for (rank_t r = 0; r < n; ++r)
          total += up(small<T>(r, i)) * static_cast<exact<T>>(r == 0 ? first.factor : others.factor);
        return back<T>(total == 0 ? exact<T>{} : total);
      },
      &others);
}

TYPED_TEST(every_type, knows_truth) {
  using T = TypeParam;
  auto const truth = [](bool b) { return static_cast<T>(static_cast<float>(b)); };
  auto const make = [](rank_t r, std::size_t i) {
    return mixed(i * 8 + static_cast<std::uint64_t>(r)) % 3 == 0 ? static_cast<T>(0.0F) : small<T>(r, i);
  };
  compare<T>(logical_and, make, one_by_one<T>(make, [&](T a, T b) { return truth(a != 0 && b != 0); }));
  compare<T>(logical_or, make, one_by_one<T>(make, [&](T a, T b) { return truth(a != 0 || b != 0); }));
  compare<T>(logical_xor, make, one_by_one<T>(make, [&](T a, T b) { return truth((a != 0) != (b != 0)); }));
}

TYPED_TEST(every_type, takes_an_operation_of_the_user) {
  using T = TypeParam;
  auto const make = [](rank_t r, std::size_t i) { return power<T>(r, i); };
  compare<T>(small_first{}, make, one_by_one<T>(make, small_first{}));
}

template <class T>
class every_integer : public testing::Test {};
using integers = testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                                std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(every_integer, integers, type_names);

TYPED_TEST(every_integer, combines_bits) {
  using T = TypeParam;
  compare<T>(bit_and, any<T>, one_by_one<T>(any<T>, [](T a, T b) { return static_cast<T>(a & b); }));
  compare<T>(bit_or, any<T>, one_by_one<T>(any<T>, [](T a, T b) { return static_cast<T>(a | b); }));
  compare<T>(bit_xor, any<T>, one_by_one<T>(any<T>, [](T a, T b) { return static_cast<T>(a ^ b); }));
}

TEST(user_type, of_12_bytes_is_summed_and_compared) {
  auto const make = [](rank_t r, std::size_t i) {
    std::uint64_t const x = mixed(i * 8 + static_cast<std::uint64_t>(r));
    return affine{static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(x >> 32), static_cast<std::uint32_t>(r)};
  };
  compare<affine>(sum, make, one_by_one<affine>(make, [](affine a, affine b) { return a + b; }));
  compare<affine>(min, make, one_by_one<affine>(make, [](affine a, affine b) { return b < a ? b : a; }));
  compare<affine>(max, make, one_by_one<affine>(make, [](affine a, affine b) { return a < b ? b : a; }));
}

template <class T>
class every_float : public testing::Test {};
using floats = testing::Types<float, double, float16, bfloat16, float8_e4m3, float8_e5m2>;
TYPED_TEST_SUITE(every_float, floats, type_names);

/// Whatever the order, n - 1 additions that round to nearest are off by at most (n - 1) u (|x_1| + … + |x_n|) to first
/// order, u half an ulp of 1, plus half of the least subnormal for each in the narrow types, which convert (Higham,
/// Accuracy and Stability of Numerical Algorithms, section 4.2). Doubled for the higher orders.
TYPED_TEST(every_float, sums_of_any_values_stay_within_the_bound) {
  using T = TypeParam;
  using limits = std::numeric_limits<T>;
  for (int const n : {2, 5, 8})
    for (algorithm const how : algorithms_for(collective::all_reduce, n))
      on_ranks(medium::in_process, n, [&](comm& c) {
        std::size_t const count = 501;
        guarded<T> data(count);
        data.fill([&](std::size_t i) { return any<T>(c.rank(), i); });
        all_reduce<T>(c, data.all(), data.all(), sum, {.algorithm = how});
        for (std::size_t i = 0; i < count; ++i) {
          long double total = 0, magnitude = 0;
          for (rank_t r = 0; r < n; ++r) {
            auto const x = static_cast<long double>(any<T>(r, i));
            total += x;
            magnitude += std::abs(x);
          }
          auto const unit = static_cast<long double>(limits::epsilon()) / 2;
          long double const bound =
              2 * (n - 1) * (unit * magnitude + static_cast<long double>(limits::denorm_min()) / 2);
          ASSERT_LE(std::abs(static_cast<long double>(data[i]) - total), bound)
              << to_string(how) << " on " << n << " ranks, element " << i;
        }
      });
}

template <class T>
class every_other_collective : public testing::Test {};
using sampled = testing::Types<float, double, float16, bfloat16, float8_e4m3, float8_e5m2, std::int8_t, std::uint16_t,
                               std::int32_t, std::uint64_t>;
TYPED_TEST_SUITE(every_other_collective, sampled, type_names);

/// reduce to rank 2 and reduce_scatter, by every algorithm.
template <class T>
void compare_other_calls(reducing_call<T> const& reduces, reducing_call<T> const& scatters, contribution<T> const& make,
                         result<T> const& expected) {
  int const n = 4;
  std::size_t const count = 777;
  on_ranks(medium::in_process, n, [&](comm& c) {
    auto const offset = static_cast<std::size_t>(c.rank()) * count;
    for (algorithm const how : algorithms_for(collective::reduce, n))
      for (bool const in_place : {false, true}) {
        guarded<T> in(count, 1), out(count, 2);
        in.fill([&](std::size_t i) { return make(c.rank(), i); });
        reduces(c, in.all(), in_place ? in.all() : out.all(), how);
        if (c.rank() == 2) {
          EXPECT_EQ((in_place ? in : out).wrong([&](std::size_t i) { return expected(n, i); }), "") << to_string(how);
        }
        if (c.rank() != 2 || !in_place) {
          EXPECT_EQ(in.wrong([&](std::size_t i) { return make(c.rank(), i); }), "") << to_string(how);
        }
      }
    for (algorithm const how : algorithms_for(collective::reduce_scatter, n))
      for (bool const in_place : {false, true}) {
        guarded<T> in(n * count, 1), out(count, 2);
        in.fill([&](std::size_t i) { return make(c.rank(), i); });
        scatters(c, in.all(), in_place ? in.part(offset, count) : out.all(), how);
        auto const mine = [&](std::size_t i) { return expected(n, offset + i); };
        if (!in_place) { EXPECT_EQ(out.wrong(mine), "") << to_string(how); }
        auto const kept = [&](std::size_t i) {
          return in_place && i >= offset && i < offset + count ? mine(i - offset) : make(c.rank(), i);
        };
        EXPECT_EQ(in.wrong(kept), "") << to_string(how) << (in_place ? " in place" : "");
      }
  });
}

/// With one operation of each kind: plain, finished, prepared.
template <class T, class Op>
void compare_others(Op const& op, contribution<T> const& make, result<T> const& expected) {
  auto const reduces = [&](comm& c, std::span<T const> in, std::span<T> out, algorithm how) {
    reduce<T>(c, in, out, op, 2, {.algorithm = how});
  };
  auto const scatters = [&](comm& c, std::span<T const> in, std::span<T> out, algorithm how) {
    reduce_scatter<T>(c, in, out, {}, op, {.algorithm = how});
  };
  compare_other_calls<T>(reduces, scatters, make, expected);
}

TYPED_TEST(every_other_collective, sums_averages_and_scales) {
  using T = TypeParam;
  auto const total = [](int n, std::size_t i, auto factor) {
    exact<T> x{};
    for (rank_t r = 0; r < n; ++r) x += up(small<T>(r, i)) * static_cast<exact<T>>(factor);
    return x;
  };
  compare_others<T>(sum, small<T>, [&](int n, std::size_t i) { return back<T>(total(n, i, 1)); });
  compare_others<T>(premul_sum(static_cast<factor_of<T>>(2)), small<T>,
                    [&](int n, std::size_t i) { return back<T>(total(n, i, 2)); });
  compare_others<T>(max, any<T>, one_by_one<T>(any<T>, [](T a, T b) { return a < b ? b : a; }));
  compare_others<T>(avg, small<T>, [&](int n, std::size_t i) {
    if constexpr (integral<T>) {
      __extension__ __int128 x = 0;
      for (rank_t r = 0; r < n; ++r) x += small<T>(r, i);
      return static_cast<T>(x / n);
    } else {
      return back<T>(total(n, i, 1) / n);
    }
  });
}

}  // namespace
