#pragma once

#include <rondo/detail/instruction_set.hpp>
#include <rondo/detail/lanes.hpp>

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

namespace rondo::inline v0 {

namespace detail {

/// sums[k] += x[i + k]^2 for whole runs of 16 elements; returns how many elements that were.
[[gnu::always_inline]] inline std::size_t add_squares(float const* x, std::size_t count, double* sums) noexcept {
  using quad = lanes<double, 32>;
  quad a, b, c, d;
  auto const each = [&](auto const& f) __attribute__((always_inline)) { f(a, 0), f(b, 4), f(c, 8), f(d, 12); };
  each([&](quad & s, std::size_t k) __attribute__((always_inline)) { std::memcpy(&s, sums + k, sizeof s); });
  std::size_t i = 0;
  for (; i + 16 <= count; i += 16)
    each([&](quad & s, std::size_t k) __attribute__((always_inline)) {
      lanes<float, 16> narrow;
      std::memcpy(&narrow, x + i + k, sizeof narrow);
      quad const wide = __builtin_convertvector(narrow, quad);
      s += wide * wide;
    });
  each([&](quad & s, std::size_t k) __attribute__((always_inline)) { std::memcpy(sums + k, &s, sizeof s); });
  return i;
}

#ifdef __x86_64__
[[gnu::target("avx2"), gnu::flatten]] inline std::size_t add_squares_avx2(float const* x, std::size_t count,
                                                                          double* sums) noexcept {
  return add_squares(x, count, sums);
}
#endif

}  // namespace detail

/// The sum of the squares of a sequence of floats, in double, where squares of floats are exact and cannot overflow.
///
/// Element i of the sequence is added to sum i mod 16, so the bits depend on the sequence alone: not on the pieces that
/// it comes in, nor on the instructions of the processor. The total is finite if and only if all elements are.
class sum_of_squares {
 public:
  /// The next elements.
  void add(std::span<float const> x) noexcept {
    std::size_t i = 0;
    for (; i < x.size() && next_ % 16 != 0; ++i) add_one(x[i]);
    i += add_runs(x.data() + i, x.size() - i);
    for (; i < x.size(); ++i) add_one(x[i]);
  }

  double total() const noexcept {
    auto s = sums_;
    for (std::size_t half = s.size() / 2; half > 0; half /= 2)
      for (std::size_t k = 0; k < half; ++k) s[k] += s[k + half];
    return s[0];
  }

 private:
  void add_one(float x) noexcept { sums_[next_++ % 16] += static_cast<double>(x) * static_cast<double>(x); }

  std::size_t add_runs(float const* x, std::size_t count) noexcept {
#ifdef __x86_64__
    if (detail::best_instruction_set() != detail::instruction_set::baseline)
      return detail::add_squares_avx2(x, count, sums_.data());
#endif
    return detail::add_squares(x, count, sums_.data());
  }

  std::array<double, 16> sums_{};
  std::size_t next_ = 0;
};

}  // namespace rondo::inline v0
