#pragma once

#include "datatype.hpp"
#include <rondo/bfloat16.hpp>
#include <rondo/float16.hpp>
#include <rondo/float8.hpp>

#include <cstdint>
#include <type_traits>

namespace rondo::bench {

/// The significand bits (with the hidden one) and the exponent of the smallest normal number of a float type.
template <class T>
struct float_format;

template <>
struct float_format<float> {
  static constexpr int digits = 24, min_exponent = -126;
};
template <>
struct float_format<double> {
  static constexpr int digits = 53, min_exponent = -1022;
};
template <>
struct float_format<float16> {
  static constexpr int digits = 11, min_exponent = -14;
};
template <>
struct float_format<bfloat16> {
  static constexpr int digits = 8, min_exponent = -126;
};
template <>
struct float_format<float8_e4m3> {
  static constexpr int digits = 4, min_exponent = -6;
};
template <>
struct float_format<float8_e5m2> {
  static constexpr int digits = 3, min_exponent = -14;
};

/// Calls visitor(std::type_identity<T>{}) for the C++ type of the element.
template <class Visitor>
decltype(auto) with_type(datatype type, Visitor&& visitor) {
  switch (type) {
    case datatype::int8: return visitor(std::type_identity<std::int8_t>{});
    case datatype::uint8: return visitor(std::type_identity<std::uint8_t>{});
    case datatype::int32: return visitor(std::type_identity<std::int32_t>{});
    case datatype::uint32: return visitor(std::type_identity<std::uint32_t>{});
    case datatype::int64: return visitor(std::type_identity<std::int64_t>{});
    case datatype::uint64: return visitor(std::type_identity<std::uint64_t>{});
    case datatype::half: return visitor(std::type_identity<float16>{});
    case datatype::float64: return visitor(std::type_identity<double>{});
    case datatype::bfloat16: return visitor(std::type_identity<bfloat16>{});
    case datatype::f8e4m3: return visitor(std::type_identity<float8_e4m3>{});
    case datatype::f8e5m2: return visitor(std::type_identity<float8_e5m2>{});
    case datatype::float32: break;
  }
  return visitor(std::type_identity<float>{});
}

}  // namespace rondo::bench
