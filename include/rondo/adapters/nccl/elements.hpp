#pragma once

#include <rondo/adapters/nccl/status.hpp>
#include <rondo/adapters/nccl/types.h>
#include <rondo/bfloat16.hpp>
#include <rondo/element.hpp>
#include <rondo/float16.hpp>
#include <rondo/float8.hpp>
#include <rondo/ops.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

/// The element types and operations of NCCL, as rondo has them.
namespace rondo::inline v0::nccl {

/// Calls f(std::type_identity<T>{}) for the element type. Throws refusal for a number that is none.
template <class F>
auto with_type(ncclDataType_t type, F&& f) {
  switch (static_cast<int>(type)) {
    case ncclInt8: return f(std::type_identity<std::int8_t>{});
    case ncclUint8: return f(std::type_identity<std::uint8_t>{});
    case ncclInt32: return f(std::type_identity<std::int32_t>{});
    case ncclUint32: return f(std::type_identity<std::uint32_t>{});
    case ncclInt64: return f(std::type_identity<std::int64_t>{});
    case ncclUint64: return f(std::type_identity<std::uint64_t>{});
    case ncclFloat16: return f(std::type_identity<float16>{});
    case ncclFloat32: return f(std::type_identity<float>{});
    case ncclFloat64: return f(std::type_identity<double>{});
    case ncclBfloat16: return f(std::type_identity<bfloat16>{});
    case ncclFloat8e4m3: return f(std::type_identity<float8_e4m3>{});
    case ncclFloat8e5m2: return f(std::type_identity<float8_e5m2>{});
    default:
      throw refusal(ncclInvalidArgument, "there is no ncclDataType_t " + std::to_string(static_cast<int>(type)) +
                                             ": pass one of ncclInt8 to ncclFloat8e5m2");
  }
}

inline std::size_t size_of(ncclDataType_t type) {
  return with_type(type, []<class T>(std::type_identity<T>) { return sizeof(T); });
}

/// A factor of ncclRedOpCreatePreMulSum, in the type that it was given.
struct factor {
  ncclDataType_t type = ncclNumTypes;
  std::array<std::byte, 8> bytes{};

  /// Reads it from memory of the host.
  static factor read(ncclDataType_t type, void const* from) {
    factor f{.type = type};
    std::memcpy(f.bytes.data(), from, size_of(type));
    return f;
  }
};

/// An operation: one of NCCL's own, or the sum of contributions times a factor.
struct operation {
  ncclRedOp_t op = ncclSum;  ///< ncclNumOps: with a factor
  factor scale{};

  /// Calls f(Op) with rondo's operation on T.
  template <class T, class F>
  auto with(F&& f) const {
    switch (op) {
      case ncclSum: return f(sum);
      case ncclProd: return f(prod);
      case ncclMax: return f(max);
      case ncclMin: return f(min);
      case ncclAvg: return f(avg);
      default: {
        premul_sum_op<T> scaled{};
        std::memcpy(&scaled.factor, scale.bytes.data(), sizeof scaled.factor);
        return f(scaled);
      }
    }
  }
};

}  // namespace rondo::inline v0::nccl
