#pragma once

#include <rondo/detail/lanes.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace rondo::inline v0::detail {

#ifdef __x86_64__

/// What sum_float8() looks up, by 7 bits at a time.
///
/// The code of a magnitude is the binade, which is the code of the least number with the same exponent, and what its
/// significand is more than `one`. Subnormals count to the binade of the least normal number. Two significands of one
/// scale are added with three more bits, the last of which says that something was cut off: that is enough to round to
/// nearest even (Goldberg, "What Every Computer Scientist Should Know About Floating-Point Arithmetic", 1991,
/// theorem 8).
template <class T>
struct float8_tables {
  using table = std::array<std::uint8_t, 128>;

  static constexpr int mantissa = std::numeric_limits<T>::digits - 1;
  static constexpr int one = 1 << mantissa;
  static constexpr int infinity = T::format::infinity;  ///< or where the first NaN is
  static constexpr bool infinite = std::numeric_limits<T>::has_infinity;

  /// Codes of results are kept so much higher that no sum is negative, and that an overflow saturates to infinity.
  static constexpr int zero = 255 - infinity;

  /// Significand of the greater operand, by its code. That of infinity stays beyond all numbers, whatever is added.
  static constexpr std::uint8_t significand_of(int code) noexcept {
    return static_cast<std::uint8_t>(infinite && code >= infinity ? 95 : 8 * significand(code));
  }

  /// Twice the binade of the lesser operand less its significand, by its code. Twice the binade of the greater operand
  /// less this is the index in `aligned`.
  static constexpr std::uint8_t place_of(int code) noexcept {
    return static_cast<std::uint8_t>(2 * binade(code) - significand(code));
  }

  /// The lesser significand on the scale of the greater, by how many binades they are apart and itself.
  static constexpr std::uint8_t aligned_of(int index) noexcept {
    int const apart = index / (2 * one);
    int const whole = index % (2 * one) * 8;
    int const kept = whole >> apart;
    return static_cast<std::uint8_t>(kept << apart == whole ? kept : kept | 1);
  }

  /// `zero` and what the code of a sum of significands, rounded, is more than the binade; as if there were as many
  /// binades below the least as are needed. Nothing at all is far below.
  static constexpr std::uint8_t rounded_of(int sum) noexcept {
    if (sum == 0) return static_cast<std::uint8_t>(zero - (mantissa + 2) * one);
    int const cut = static_cast<int>(std::bit_width(static_cast<unsigned>(sum))) - 1 - mantissa;
    int const up = cut > 0 ? (1 << (cut - 1)) - 1 + (sum >> cut & 1) : 0;
    int const significand = cut > 0 ? (sum + up) >> cut : sum << -cut;
    return static_cast<std::uint8_t>(zero + (cut - 3) * one + significand - one);
  }

  /// The code of a subnormal, by the lower 6 bits of that above.
  static constexpr std::uint8_t subnormal_of(int index) noexcept {
    int const code = (index + 96 - zero % 64) % 64 - 32;
    int const below = 1 - (code >> mantissa);
    return static_cast<std::uint8_t>(below > 0 ? (one + (code & (one - 1))) >> below : 0);
  }

  static constexpr table tabulate(std::uint8_t (*entry)(int), int first = 0) noexcept {
    table all{};
    for (int i = 0; i < 128; ++i) all[static_cast<std::size_t>(i)] = entry(first + i);
    return all;
  }

 private:
  static constexpr int binade(int code) noexcept { return code < one ? one : code / one * one; }
  static constexpr int significand(int code) noexcept { return code - binade(code) + one; }
};

using bytes_64 = lanes<std::uint8_t, 64>;

/// A table in two registers.
struct table_128 {
  bytes_64 low, high;

  /// x[i] = the entry of the lower 7 bits of x[i].
  [[gnu::target("avx512bw,avx512vbmi"), gnu::always_inline]] void look_up(bytes_64& x) const noexcept {
    asm("vpermi2b %2, %1, %0" : "+v"(x) : "v"(low), "v"(high));
  }
};

template <class T, std::uint8_t (*Entry)(int), int First = 0>
[[gnu::always_inline]] inline void load_table(table_128& registers) noexcept {
  alignas(64) static constexpr auto values = float8_tables<T>::tabulate(Entry, First);
  std::memcpy(&registers, values.data(), sizeof registers);
}

/// x[i] + y[i], at most 255; x[i] - y[i], at least 0.
[[gnu::target("avx512bw,avx512vbmi"), gnu::always_inline]] inline void add_saturated(bytes_64& x,
                                                                                     bytes_64 const& y) noexcept {
  asm("vpaddusb %1, %0, %0" : "+v"(x) : "v"(y));
}
[[gnu::target("avx512bw,avx512vbmi"), gnu::always_inline]] inline void subtract_saturated(bytes_64& x,
                                                                                          bytes_64 const& y) noexcept {
  asm("vpsubusb %1, %0, %0" : "+v"(x) : "v"(y));
}

/// The sum of two sources of 8-bit floats, as far as they fill registers of 64; returns how many bytes that were. The
/// same bits as by way of float, of which a register holds 16 only: all that depends on two bytes is looked up instead,
/// after it has been brought down to one.
template <class T>
[[gnu::target("avx512bw,avx512vbmi")]] std::size_t sum_float8(std::byte* out, std::byte const* const* sources,
                                                              std::size_t bytes) noexcept {
  using tables = float8_tables<T>;
  constexpr std::uint8_t magnitude = 0x7f, sign = 0x80, one = tables::one, zero = tables::zero;
  constexpr std::uint8_t greatest = tables::infinite ? tables::infinity : tables::infinity - 1;
  constexpr std::uint8_t nan = T::format::quiet_nan;

  table_128 significands, places, aligned, rounded, rounded_high, subnormals;
  load_table<T, tables::significand_of>(significands);
  load_table<T, tables::place_of>(places);
  load_table<T, tables::aligned_of>(aligned);
  load_table<T, tables::rounded_of>(rounded);
  load_table<T, tables::rounded_of, 128>(rounded_high);
  load_table<T, tables::subnormal_of>(subnormals);

  std::byte const* const first = sources[0];
  std::byte const* const second = sources[1];
  std::size_t done = 0;
  for (; done + 64 <= bytes; done += 64) {
    bytes_64 a, b;
    std::memcpy(&a, first + done, 64);
    std::memcpy(&b, second + done, 64);
    bytes_64 const none{};
    bytes_64 const x = a & magnitude, y = b & magnitude;
    bytes_64 const more = x > y ? x : y, less = x > y ? y : x;
    auto const opposite = (a ^ b) > magnitude;

    bytes_64 const binades = more & static_cast<std::uint8_t>(magnitude + 1 - one);
    bytes_64 const binade = binades > none + one ? binades : none + one;
    bytes_64 place = less;
    places.look_up(place);
    bytes_64 addend = binade + binade - place;
    add_saturated(addend, none + sign);  // binades too far apart count as the last that has an index
    aligned.look_up(addend);
    bytes_64 total = more;
    significands.look_up(total);
    total = opposite ? total - addend : total + addend;

    bytes_64 code = total;
    rounded.look_up(code);
    if constexpr (2 * 8 * (2 * one - 1) > magnitude) {  // the sum of two significands
      bytes_64 high = total;
      rounded_high.look_up(high);
      code = total > magnitude ? high : code;
    }
    add_saturated(code, binade);
    bytes_64 subnormal = code;
    subnormals.look_up(subnormal);
    bytes_64 normal = code;
    subtract_saturated(normal, none + zero);
    bytes_64 result = code < static_cast<std::uint8_t>(zero + one) ? subnormal : normal;
    result |= (x > y ? a : b) & sign;

    bytes_64 const cancelled = opposite ? total : none + one;
    result = cancelled == none ? none : result;  // positive, as IEEE 754 has it
    bytes_64 strangest = more;
    if constexpr (tables::infinite) {  // infinities of opposite signs make a NaN, too
      bytes_64 const beyond = opposite ? less + std::uint8_t{1} : none;
      strangest = beyond > more ? beyond : more;
    }
    result = strangest > greatest ? none + nan : result;
    std::memcpy(out + done, &result, 64);
  }
  return done;
}

#endif

}  // namespace rondo::inline v0::detail
