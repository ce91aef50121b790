#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace rondo::bench {

/// Types of elements, under the names of nccl-tests.
enum class datatype : std::uint8_t {
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  half,
  float32,
  float64,
  bfloat16,
  f8e4m3,
  f8e5m2
};

/// Reductions, under the names of nccl-tests.
enum class reduction : std::uint8_t { sum, prod, min, max, avg, mulsum };

std::vector<datatype> all_datatypes();
std::vector<reduction> all_reductions();

std::string_view name_of(datatype type) noexcept;
std::string_view name_of(reduction op) noexcept;
std::size_t size_of(datatype type) noexcept;

/// By name; also float16, fp16, float32, float64, bf16 and the like. Throws usage_error.
datatype datatype_from(std::string_view name);
reduction reduction_from(std::string_view name);

/// The factor that mulsum multiplies every contribution by before they are summed.
inline constexpr int mulsum_factor = 2;

}  // namespace rondo::bench
