#pragma once

#include <rondo/bfloat16.hpp>
#include <rondo/error.hpp>
#include <rondo/float16.hpp>
#include <rondo/float8.hpp>
#include <rondo/ops.hpp>

#include <ATen/ATen.h>
#include <concepts>
#include <cstdint>
#include <string>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/version.h>
#include <type_traits>

namespace rondo::inline v0::detail {

/// Calls f(std::type_identity<T>{}) for the element type of a tensor; complex ones count as two reals.
template <class F>
void with_element(at::ScalarType type, F const& f) {
  switch (c10::toRealValueType(type)) {
    case at::kBool: return f(std::type_identity<bool>{});
    case at::kByte: return f(std::type_identity<std::uint8_t>{});
    case at::kChar: return f(std::type_identity<std::int8_t>{});
    case at::kShort: return f(std::type_identity<std::int16_t>{});
    case at::kInt: return f(std::type_identity<std::int32_t>{});
    case at::kLong: return f(std::type_identity<std::int64_t>{});
    case at::kHalf: return f(std::type_identity<float16>{});
    case at::kBFloat16: return f(std::type_identity<bfloat16>{});
    case at::kFloat: return f(std::type_identity<float>{});
    case at::kDouble: return f(std::type_identity<double>{});
#if TORCH_VERSION_MAJOR >= 2
    case at::kFloat8_e5m2: return f(std::type_identity<float8_e5m2>{});
    case at::kFloat8_e4m3fn: return f(std::type_identity<float8_e4m3>{});
#endif
    default:
      throw invalid_argument(std::string("tensors of type ") + c10::toString(type) +
                             " cannot be moved by the rondo backend: view them as bytes, or convert them first");
  }
}

/// The factor of PREMUL_SUM.
inline double factor_of(c10d::ReduceOp const& op) {
  auto const& given = static_cast<c10d::NCCLPreMulSumSupplement const&>(*op.supplement_);
#if TORCH_VERSION_MAJOR >= 2
  return given.tensor_factor.defined() ? given.tensor_factor.item<double>() : given.double_factor;
#else
  return given.tensor_factors.empty() ? given.double_factor : given.tensor_factors.front().item<double>();
#endif
}

/// Calls f(std::type_identity<T>{}, operation). A truth value is reduced as such: a sum or maximum is "or", a product
/// or minimum "and". Throws invalid_argument for what has no meaning.
template <class F>
void with_reduction(at::ScalarType type, c10d::ReduceOp const& op, F const& f) {
  using c10d::ReduceOp;
  auto const refuse = [&](char const* what) {
    throw invalid_argument(std::string("tensors of type ") + c10::toString(type) + " cannot be reduced by " + what +
                           ": convert them first");
  };
  ReduceOp::RedOpType const kind = op;
  bool const linear = kind == ReduceOp::SUM || kind == ReduceOp::AVG || kind == ReduceOp::PREMUL_SUM;
  if (c10::isComplexType(type) && !linear) refuse("anything but a sum");
  with_element(type, [&]<class T>(std::type_identity<T> t) {
    if constexpr (std::same_as<T, bool>) {
      switch (kind) {
        case ReduceOp::SUM:
        case ReduceOp::MAX:
        case ReduceOp::BOR: return f(t, logical_or);
        case ReduceOp::PRODUCT:
        case ReduceOp::MIN:
        case ReduceOp::BAND: return f(t, logical_and);
        case ReduceOp::BXOR: return f(t, logical_xor);
        default: return refuse("a mean");
      }
    } else if constexpr (sizeof(T) == 1 && !std::integral<T>) {
      refuse("this backend");
    } else {
      switch (kind) {
        case ReduceOp::SUM: return f(t, sum);
        case ReduceOp::PRODUCT: return f(t, prod);
        case ReduceOp::MIN: return f(t, min);
        case ReduceOp::MAX: return f(t, max);
        case ReduceOp::AVG: return f(t, avg);
        default: break;
      }
      if constexpr (std::integral<T>) {
        switch (kind) {
          case ReduceOp::BAND: return f(t, bit_and);
          case ReduceOp::BOR: return f(t, bit_or);
          case ReduceOp::BXOR: return f(t, bit_xor);
          default: return refuse("a sum with factors");
        }
      } else {
        if (kind == ReduceOp::PREMUL_SUM) return f(t, premul_sum(factor_of(op)));
        refuse("a bitwise operation");
      }
    }
  });
}

/// Throws invalid_argument for what with_reduction() refuses.
inline void check_reduction(at::ScalarType type, c10d::ReduceOp const& op) {
  with_reduction(type, op, [](auto, auto const&) {});
}

}  // namespace rondo::inline v0::detail
