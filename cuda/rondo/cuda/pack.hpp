#pragma once

#include <rondo/config.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace rondo::inline v0::device {

namespace detail {

template <class T, std::size_t Count>
inline constexpr std::size_t pack_alignment = !std::has_single_bit(sizeof(T) * Count) ? alignof(T)
                                              : sizeof(T) * Count < 16                ? sizeof(T) * Count
                                                                                      : 16;

}  // namespace detail

/// How many elements of T a thread moves at once: 16 bytes of them, the widest access that a GPU has, and 8 at the
/// most, so that those of 8 ranks fit into registers.
template <class T>
inline constexpr std::size_t pack_count = sizeof(T) == 1   ? 8
                                          : sizeof(T) < 16 ? 16 / sizeof(T)
                                                           : 1;

/// Neighbouring elements, moved at once.
template <class T, std::size_t Count = pack_count<T>>
struct alignas(detail::pack_alignment<T, Count>) pack {
  static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>,
                "kernels keep elements in registers: use a trivially copyable type with a default constructor");
  static constexpr std::size_t count = Count;

  T values[Count];

  /// Element j. On a device it is taken out of the 4 bytes that it is a part of: compilers would give each narrow
  /// element a register of its own, for as long as the pack is needed.
  RONDO_HD T operator[](std::size_t j) const noexcept {
#ifdef __CUDA_ARCH__
    if constexpr (sizeof(T) < 4 && sizeof(pack) % 4 == 0) {
      struct words {
        std::uint32_t all[sizeof(pack) / 4];
      };
      using bits = std::conditional_t<sizeof(T) == 1, std::uint8_t, std::uint16_t>;
      std::size_t const at = j * sizeof(T);
      return std::bit_cast<T>(static_cast<bits>(std::bit_cast<words>(*this).all[at / 4] >> at % 4 * 8));
    }
#endif
    return values[j];
  }
};

/// Calls function(i) for i < Count. On a device every i is a number that the compiler knows: an array that is indexed
/// by others lies in memory, not in registers.
template <std::size_t Count, class F>
RONDO_HD constexpr void unrolled(F const& function) noexcept {
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (std::size_t i = 0; i < Count; ++i) function(i);
}

/// A buffer as packs of `Count` elements. The last one may be incomplete and the buffer need not be aligned: what does
/// not exist is neither read nor written, and reads as zero.
///
/// The buffer may be a peer's: nothing here lets a compiler assume that it does not change while the kernel runs.
template <class T, std::size_t Count>
class view {
 public:
  using value_type = std::remove_const_t<T>;
  using pack_type = pack<value_type, Count>;

  RONDO_HD view(T* data, std::size_t count) noexcept : data_(data), count_(count), aligned_(is_aligned(data)) {}

  RONDO_HD std::size_t packs() const noexcept { return (count_ + Count - 1) / Count; }

  RONDO_HD pack_type load(std::size_t i) const noexcept {
    std::size_t const first = i * Count;
    if (aligned_ && first + Count <= count_) return *reinterpret_cast<pack_type const*>(data_ + first);
    pack_type x{};
    for (std::size_t j = 0; j < Count; ++j)
      if (first + j < count_) x.values[j] = data_[first + j];
    return x;
  }

  RONDO_HD void store(std::size_t i, pack_type const& x) const noexcept {
    std::size_t const first = i * Count;
    if (aligned_ && first + Count <= count_) {
      *reinterpret_cast<pack_type*>(data_ + first) = x;
      return;
    }
    for (std::size_t j = 0; j < Count; ++j)
      if (first + j < count_) data_[first + j] = x.values[j];
  }

 private:
  RONDO_HD static bool is_aligned(T const* data) noexcept {
    return reinterpret_cast<std::uintptr_t>(data) % alignof(pack_type) == 0;
  }

  T* data_;
  std::size_t count_;
  bool aligned_;
};

}  // namespace rondo::inline v0::device
