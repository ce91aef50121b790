#pragma once

#include <rondo/config.hpp>
#include <rondo/detail/lanes.hpp>

#include <cmath>
#include <cstddef>
#include <type_traits>

namespace rondo::inline v0::detail {

#ifdef __x86_64__
[[gnu::target("avx")]] inline void to_square_root_avx(lanes<float, 32>& x) noexcept { x = __builtin_ia32_sqrtps256(x); }
#endif

/// x = sqrt(x), correctly rounded, for a float or a register of floats. Compilers do not vectorise std::sqrt, which may
/// set errno.
template <class F>
[[gnu::always_inline]] RONDO_HD inline void to_square_root(F& x) noexcept {
  if constexpr (std::is_same_v<F, float>) {
#ifdef __CUDA_ARCH__
    x = __fsqrt_rn(x);
#else
    x = std::sqrt(x);
#endif
#if defined(__x86_64__) && !defined(__CUDA_ARCH__)
  } else if constexpr (std::is_same_v<F, lanes<float, 16>>) {
    x = __builtin_ia32_sqrtps(x);
  } else if constexpr (std::is_same_v<F, lanes<float, 32>>) {
    to_square_root_avx(x);
#endif
  } else {
    for (std::size_t i = 0; i < sizeof(F) / sizeof(float); ++i) {
      float root = x[i];
      to_square_root(root);
      x[i] = root;
    }
  }
}

}  // namespace rondo::inline v0::detail
