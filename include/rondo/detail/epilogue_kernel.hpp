#pragma once

#include <rondo/detail/combine.hpp>
#include <rondo/detail/instruction_set.hpp>
#include <rondo/fused/epilogue.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace rondo::inline v0::detail {

/// Elements of so many bytes that are computed between reading what others contribute and storing anything: a few KiB,
/// which stay in the nearest cache.
constexpr std::size_t block_of(std::size_t bytes) noexcept {
  return bytes <= 16 ? 1024 : std::max<std::size_t>(1, 16384 / bytes);
}

#ifdef __clang__
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"  // not every epilogue can be vectorised, and need not
#elif defined(__CUDACC__)
#pragma nv_diagnostic push
#pragma nv_diag_suppress 1675  // it hands the pragmas of g++ on, which it does not know
#endif

/// out[i] = e(first + i, values[i]), many at a time, for an independent epilogue: a loop as in fold_blocks.
template <class U, class A, class E>
[[gnu::always_inline]] inline void apply_many(E const& e, std::size_t first, A const* values, std::byte* out,
                                              std::size_t count) noexcept {
  E const own = e;  // nothing else has its address, so that no store can change it
  constexpr std::size_t stride = 16;
  std::size_t i = 0;
  for (; i + stride <= count; i += stride) {
#ifdef __clang__
#pragma clang loop vectorize(assume_safety) unroll(disable)
#else
#pragma GCC ivdep
#pragma GCC unroll 1
#endif
    for (std::size_t k = i; k < i + stride; ++k) {
      U const made = own(first + k, values[k]);
      std::memcpy(out + k * sizeof(U), &made, sizeof(U));
    }
  }
  for (; i < count; ++i) store<U>(out + i * sizeof(U), own(first + i, values[i]));
}

#ifdef __clang__
#pragma clang diagnostic pop
#elif defined(__CUDACC__)
#pragma nv_diagnostic pop
#endif

#ifdef __x86_64__
template <class U, class A, class E>
[[gnu::target("avx2,f16c"), gnu::flatten]] void apply_many_avx2(E const& e, std::size_t first, A const* values,
                                                                std::byte* out, std::size_t count) noexcept {
  apply_many<U>(e, first, values, out, count);
}
#endif

/// Calls f(span<U>) for `count` <= block_of(sizeof(U)) elements at `out`, of any alignment.
template <class U, class F>
void with_span(std::byte* out, std::size_t count, F&& f) noexcept {
  if (reinterpret_cast<std::uintptr_t>(out) % alignof(U) == 0) return f(std::span(reinterpret_cast<U*>(out), count));
  alignas(U) std::array<std::byte, block_of(sizeof(U)) * sizeof(U)> aligned;
  f(std::span(reinterpret_cast<U*>(aligned.data()), count));
  std::memcpy(out, aligned.data(), count * sizeof(U));
}

/// Has the epilogue make `count` <= block_of(sizeof(U)) elements at `out`, of any alignment, from values of numbers
/// `first`, first + 1, …
template <class U, class A, class E>
void apply_epilogue(E const& e, std::size_t first, A const* values, std::byte* out, std::size_t count) noexcept {
  if constexpr (block_epilogue<E, A, U>) {
    with_span<U>(out, count, [&](std::span<U> s) { e(first, std::span<A const>(values, count), s); });
  } else if constexpr (is_independent<E>) {
#ifdef __x86_64__
    if (best_instruction_set() != instruction_set::baseline) return apply_many_avx2<U>(e, first, values, out, count);
#endif
    apply_many<U>(e, first, values, out, count);
  } else {
    for (std::size_t i = 0; i < count; ++i) store<U>(out + i * sizeof(U), e(first + i, values[i]));
  }
}

/// The same for a producer.
template <class U, class P>
void apply_producer(P const& p, std::size_t first, std::byte* out, std::size_t count) noexcept {
  if constexpr (block_producer<P, U>)
    with_span<U>(out, count, [&](std::span<U> s) { p(first, s); });
  else
    for (std::size_t i = 0; i < count; ++i) store<U>(out + i * sizeof(U), p(first + i));
}

}  // namespace rondo::inline v0::detail
