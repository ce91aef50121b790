#pragma once

#include <cstddef>
#include <cstdint>
#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace rondo::inline v0::detail {

/// What a processor may offer beyond the instructions that every processor of its architecture has.
enum class instruction_set : std::uint8_t {
  baseline,
  avx2,    ///< with F16C, but not FMA: see fold_kernel.hpp
  avx512,  ///< F, BW, DQ and VL
  vbmi,    ///< and VBMI
};

/// Bytes of a register.
constexpr std::size_t register_bytes(instruction_set set) noexcept {
  return set >= instruction_set::avx512 ? 64 : set == instruction_set::avx2 ? 32 : 16;
}

#ifdef __x86_64__
[[gnu::cold, gnu::noinline]] inline instruction_set detect_instruction_set() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  bool const f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
  if (!__builtin_cpu_supports("avx2") || !f16c) return instruction_set::baseline;
  bool const wider = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!wider) return instruction_set::avx2;
  return __builtin_cpu_supports("avx512vbmi") ? instruction_set::vbmi : instruction_set::avx512;
}
#else
constexpr instruction_set detect_instruction_set() noexcept { return instruction_set::baseline; }
#endif

/// The richest one that this processor and its operating system offer.
inline instruction_set best_instruction_set() noexcept {
  static instruction_set const best = detect_instruction_set();
  return best;
}

}  // namespace rondo::inline v0::detail
