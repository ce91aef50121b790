#pragma once

#include <rondo/detail/instruction_set.hpp>
#include <rondo/float16.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace rondo::inline v0::detail {

template <class T, std::size_t Bytes>
struct lanes_of {
  using type [[gnu::vector_size(Bytes)]] = T;
};

/// A vector of T that fills a register of `Bytes`. No function takes or returns one by value, since how that is done
/// depends on the instruction set; all that handle them are inlined into one function of a known set.
template <class T, std::size_t Bytes>
using lanes = typename lanes_of<T, Bytes>::type;

/// A register, also as what is in it: g++ and clang define what a union shows of its other member, and of all ways to
/// get at single lanes only this one stays in registers with both.
template <std::size_t Bytes>
union float_lanes {
  lanes<float, Bytes> all;
  float each[Bytes / sizeof(float)];
};

/// x[i] = function(x[i], y[i]): compilers make it one instruction where there is one, also of a user's lambda.
template <std::size_t Bytes, class F>
[[gnu::always_inline]] inline void each_lane(F const& function, lanes<float, Bytes>& x,
                                             lanes<float, Bytes> const& y) noexcept {
  float_lanes<Bytes> a{x}, b{y};
  for (std::size_t i = 0; i < Bytes / sizeof(float); ++i) a.each[i] = function(a.each[i], b.each[i]);
  x = a.all;
}

/// Whether there are conversions between registers of narrow floats and of floats. nvcc compiles no vectors in
/// functions that are for devices too, as these are.
#ifdef __CUDACC__
inline constexpr bool converts_lanes = false;
#else
inline constexpr bool converts_lanes = true;
#endif

/// Whether a register of T is converted by widen() and narrow(). Without optimisation clang makes them calls of
/// functions that only its own run-time library has, and programs are linked with that of g++.
#if defined(__clang__) && !defined(__OPTIMIZE__)
template <class T, std::size_t Bytes>
inline constexpr bool converts_at_once = false;
#else
template <class T, std::size_t Bytes>
inline constexpr bool converts_at_once = Bytes >= register_bytes(instruction_set::avx2) && std::is_same_v<T, float16>;
#endif

/// float16 to float and back, rounded to nearest even: the instructions of F16C. Compilers offer their builtin
/// functions only where the target has F16C, which the text that all instruction sets share cannot ask for.
template <std::size_t Bytes>
[[gnu::always_inline]] inline void widen(lanes<std::int16_t, Bytes / 2> const& halves,
                                         lanes<float, Bytes>& floats) noexcept {
#ifdef __clang__
  floats = __builtin_convertvector(__builtin_bit_cast(lanes<__fp16, Bytes / 2>, halves), lanes<float, Bytes>);
#else
  asm("vcvtph2ps %1, %0" : "=v"(floats) : "vm"(halves));
#endif
}

template <std::size_t Bytes>
[[gnu::always_inline]] inline void narrow(lanes<float, Bytes> const& floats,
                                          lanes<std::int16_t, Bytes / 2>& halves) noexcept {
#ifdef __clang__
  auto const narrowed = __builtin_convertvector(floats, lanes<__fp16, Bytes / 2>);
  halves = __builtin_bit_cast(lanes<std::int16_t, Bytes / 2>, narrowed);
#else
  asm("vcvtps2ph $0, %1, %0" : "=v"(halves) : "v"(floats));
#endif
}

}  // namespace rondo::inline v0::detail
