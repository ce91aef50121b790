#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fashion_mnist {

/// 64-bit FNV-1a (Fowler, Noll, Vo) of the bytes: equal hashes show that replicas hold the same bits.
inline std::uint64_t hash(std::span<std::byte const> bytes) noexcept {
  std::uint64_t value = 0xcbf29ce484222325;
  for (std::byte const byte : bytes) value = (value ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  return value;
}

}  // namespace fashion_mnist
