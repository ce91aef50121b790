#pragma once

#include <rondo/config.hpp>

#include <cstddef>

namespace rondo::inline v0::device {

/// A float whose products are rounded before anything is added to them, as on the host: nvcc makes a * b + c of plain
/// floats one instruction that rounds once. For functions of an optimizer, which are templates (see there).
class exact_float {
 public:
  exact_float() = default;
  RONDO_HD constexpr exact_float(float value) noexcept : value_(value) {}
  RONDO_HD constexpr explicit operator float() const noexcept { return value_; }

  /// As a vector of one.
  RONDO_HD constexpr float& operator[](std::size_t) noexcept { return value_; }

#ifdef __CUDA_ARCH__
  friend RONDO_HD exact_float operator*(exact_float a, exact_float b) noexcept { return __fmul_rn(a.value_, b.value_); }
  friend RONDO_HD exact_float operator+(exact_float a, exact_float b) noexcept { return __fadd_rn(a.value_, b.value_); }
  friend RONDO_HD exact_float operator-(exact_float a, exact_float b) noexcept { return __fsub_rn(a.value_, b.value_); }
  friend RONDO_HD exact_float operator/(exact_float a, exact_float b) noexcept { return __fdiv_rn(a.value_, b.value_); }
#else
  friend RONDO_HD exact_float operator*(exact_float a, exact_float b) noexcept { return a.value_ * b.value_; }
  friend RONDO_HD exact_float operator+(exact_float a, exact_float b) noexcept { return a.value_ + b.value_; }
  friend RONDO_HD exact_float operator-(exact_float a, exact_float b) noexcept { return a.value_ - b.value_; }
  friend RONDO_HD exact_float operator/(exact_float a, exact_float b) noexcept { return a.value_ / b.value_; }
#endif

 private:
  float value_;
};

}  // namespace rondo::inline v0::device
