#pragma once

#include <rondo/detail/combine.hpp>
#include <rondo/detail/float8_sum.hpp>
#include <rondo/detail/instruction_set.hpp>
#include <rondo/detail/lanes.hpp>
#include <rondo/ops.hpp>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace rondo::inline v0::detail {

/// Narrow floats with which op computes in float.
template <class T, class Op>
concept folds_narrow = is_small_float<T> && folds<Op, float>;

/// Whether T is folded many elements at a time; else one by one.
template <class T, class Op>
inline constexpr bool folds_in_lanes = (std::is_arithmetic_v<T> && sizeof(T) <= 8) ||
                                       (converts_lanes && folds_narrow<T, Op>);

/// How many sources one pass over memory takes. Where conversions cost more than the nearest cache, 2.
template <class T, class Op>
inline constexpr std::size_t fan_in = folds_narrow<T, Op> ? 2 : 4;

/// Operations without a product that a sum could take up. In functions that may use AVX-512 compilers contract
/// a * b + c, and other processors would get other bits; what a user's operation does inside nobody knows.
template <class Op>
inline constexpr bool never_contracts = false;
template <>
inline constexpr bool never_contracts<sum_op> = true;
template <>
inline constexpr bool never_contracts<prod_op> = true;
template <bool Greater>
inline constexpr bool never_contracts<extreme_op<Greater>> = true;

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"  // not every operation can be vectorised, and need not
#elif defined(__CUDACC__)
#pragma nv_diagnostic push
#pragma nv_diag_suppress 1675  // it hands the pragmas of g++ on, which it does not know
#endif

/// A cache line, and the widest register.
inline constexpr std::size_t block_bytes = 64;

/// Folds whole blocks of K sources and returns how many bytes that were. A loop of known length whose iterations are
/// said to be independent is what compilers vectorise at -O2, without a check of the pointers, of which some may be
/// equal. What is said counts for g++ and clang alike only where the loads stand in the loop itself; at -O3 it would be
/// forgotten with the loop, if that were unrolled.
template <class T, std::size_t K, class Op>
[[gnu::always_inline]] inline std::size_t fold_blocks(Op const& op, std::byte* out, std::byte const* const* sources,
                                                      std::size_t bytes) noexcept {
  static_assert(K >= 2 && K <= 4);
  Op const own = op;  // nothing else has its address, so that no store can change it
  std::byte const* from[K];
  for (std::size_t k = 0; k < K; ++k) from[k] = sources[k];
  std::size_t done = 0;
  for (; done + block_bytes <= bytes; done += block_bytes) {
#ifdef __clang__
#pragma clang loop vectorize(assume_safety) unroll(disable)
#else
#pragma GCC ivdep
#pragma GCC unroll 1
#endif
    for (std::size_t i = 0; i < block_bytes; i += sizeof(T)) {
      T x[K];
      std::memcpy(&x[0], from[0] + done + i, sizeof(T));
      std::memcpy(&x[1], from[1] + done + i, sizeof(T));
      if constexpr (K > 2) std::memcpy(&x[2], from[2] + done + i, sizeof(T));
      if constexpr (K > 3) std::memcpy(&x[3], from[3] + done + i, sizeof(T));
      fold_elements<K>(own, x);
      std::memcpy(out + done + i, x, sizeof(T));
    }
  }
  return done;
}

/// x = op(x, y) for a register of narrow floats. Word by word: the elements of a word are brought to the same place of
/// a word one after the other, so that the width of lanes never changes.
template <class T, std::size_t Bytes, class Op>
[[gnu::always_inline]] inline void merge_narrow(Op const& op, lanes<std::int32_t, Bytes>& x,
                                                lanes<std::int32_t, Bytes> const& y) noexcept {
  using words = lanes<std::int32_t, Bytes>;
  using floats = lanes<float, Bytes>;
  if constexpr (T::format::is_upper_half) {
    constexpr std::int32_t upper = ~0xffff;
    auto const merge = [&op](words & p, words const& q) __attribute__((always_inline)) {
      floats a = __builtin_bit_cast(floats, p), b = __builtin_bit_cast(floats, q);
      each_lane<Bytes>([&op](float u, float v) noexcept { return one_nan<float>(op(u, v)); }, a, b);
      p = __builtin_bit_cast(words, a);
      T::format::round_upper_half(p);
    };
    words low = x << 16, high = x & upper;
    merge(low, y << 16);
    merge(high, y & upper);
    x = (low >> 16 & ~upper) | (high & upper);
  } else {
    words sum{};
    auto const merge = [&](int bit) __attribute__((always_inline)) {
      floats a, b;
      T::format::decode(x >> bit, a);
      T::format::decode(y >> bit, b);
      each_lane<Bytes>(op, a, b);
      words rounded;
      T::format::template encode<nan_sign::dropped>(a, rounded);
      sum |= rounded << bit;
    };
    merge(0);
    if constexpr (sizeof(T) == 1) merge(8);
    merge(16);
    if constexpr (sizeof(T) == 1) merge(24);
    x = sum;
  }
}

/// As fold_blocks, for two sources of narrow floats, a register at a time.
template <class T, std::size_t Bytes, class Op>
[[gnu::always_inline]] inline std::size_t fold_narrow(Op const& op, std::byte* out, std::byte const* const* sources,
                                                      std::size_t bytes) noexcept {
  Op const own = op;  // as in fold_blocks
  std::byte const* const a = sources[0];
  std::byte const* const b = sources[1];
  std::size_t done = 0;
  if constexpr (converts_at_once<T, Bytes>) {
    for (constexpr std::size_t half = Bytes / 2; done + half <= bytes; done += half) {
      lanes<std::int16_t, half> x, y;
      lanes<float, Bytes> p, q;
      std::memcpy(&x, a + done, half);
      std::memcpy(&y, b + done, half);
      widen<Bytes>(x, p);
      widen<Bytes>(y, q);
      each_lane<Bytes>([&own](float u, float v) noexcept { return one_nan<float>(own(u, v)); }, p, q);
      narrow<Bytes>(p, x);
      std::memcpy(out + done, &x, half);
    }
  } else {
    for (; done + Bytes <= bytes; done += Bytes) {
      lanes<std::int32_t, Bytes> x, y;
      std::memcpy(&x, a + done, Bytes);
      std::memcpy(&y, b + done, Bytes);
      merge_narrow<T, Bytes>(own, x, y);
      std::memcpy(out + done, &x, Bytes);
    }
  }
  return done;
}

/// Folds K <= fan_in sources in registers of `Set`, as far as they fill them, and returns how many bytes that were.
template <class T, std::size_t K, instruction_set Set, class Op>
[[gnu::always_inline]] inline std::size_t fold_lanes(Op const& op, std::byte* out, std::byte const* const* sources,
                                                     std::size_t bytes) noexcept {
  if constexpr (folds_narrow<T, Op>)
    return fold_narrow<T, register_bytes(Set)>(op, out, sources, bytes);
  else
    return fold_blocks<T, K>(op, out, sources, bytes);
}

template <class T, std::size_t K, class Op>
std::size_t fold_baseline(Op const& op, std::byte* out, std::byte const* const* sources, std::size_t bytes) noexcept {
  return fold_lanes<T, K, instruction_set::baseline>(op, out, sources, bytes);
}

#ifdef __x86_64__
template <class T, std::size_t K, class Op>
[[gnu::target("avx2,f16c"), gnu::flatten]] std::size_t
fold_avx2(Op const& op, std::byte* out, std::byte const* const* sources, std::size_t bytes) noexcept {
  return fold_lanes<T, K, instruction_set::avx2>(op, out, sources, bytes);
}

template <class T, std::size_t K, class Op>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,f16c"), gnu::flatten]] std::size_t
fold_avx512(Op const& op, std::byte* out, std::byte const* const* sources, std::size_t bytes) noexcept {
  return fold_lanes<T, K, instruction_set::avx512>(op, out, sources, bytes);
}
#endif

#ifdef __clang__
#pragma clang diagnostic pop
#elif defined(__CUDACC__)
#pragma nv_diagnostic pop
#endif

/// The same with the instructions of `set`. Each K is a function of its own, so that only those are compiled that are
/// called: rings fold two.
template <class T, std::size_t K, class Op>
std::size_t fold_lanes_with(instruction_set set, Op const& op, std::byte* out, std::byte const* const* sources,
                            std::size_t bytes) noexcept {
#ifdef __x86_64__
  if constexpr (is_small_float<T> && sizeof(T) == 1 && std::is_same_v<Op, sum_op>)
    if (set >= instruction_set::vbmi) return sum_float8<T>(out, sources, bytes);
  if constexpr (folds_narrow<T, Op> && never_contracts<Op>)
    if (set >= instruction_set::avx512) return fold_avx512<T, K>(op, out, sources, bytes);
  if (set != instruction_set::baseline) return fold_avx2<T, K>(op, out, sources, bytes);
#endif
  return fold_baseline<T, K>(op, out, sources, bytes);
}

/// out = op(a, b) for `bytes`. Calls with few elements are over before anything asks for instructions.
template <class T, class Op>
void fold_two(Op const& op, std::byte* out, std::byte const* a, std::byte const* b, std::size_t bytes) noexcept {
  std::size_t done = 0;
  if constexpr (folds_in_lanes<T, Op>)
    if (bytes >= block_bytes) {
      std::byte const* const sources[] = {a, b};
      done = fold_lanes_with<T, 2>(best_instruction_set(), op, out, sources, bytes);
    }
  for (; done < bytes; done += sizeof(T)) store(out + done, combine(op, load<T>(a + done), load<T>(b + done)));
}

}  // namespace rondo::inline v0::detail
