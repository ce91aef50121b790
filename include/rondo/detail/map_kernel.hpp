#pragma once

#include <rondo/detail/combine.hpp>
#include <rondo/detail/instruction_set.hpp>
#include <rondo/detail/lanes.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace rondo::inline v0::detail {

/// Loads a register of floats, or of narrow floats as floats.
template <class T, std::size_t Bytes>
[[gnu::always_inline]] inline void load_floats(std::byte const* from, lanes<float, Bytes>& floats) noexcept {
  if constexpr (std::is_same_v<T, float>) {
    std::memcpy(&floats, from, Bytes);
  } else {
    using pattern = std::conditional_t<sizeof(T) == 1, std::int8_t, std::int16_t>;
    lanes<pattern, Bytes / 4 * sizeof(T)> narrow;
    std::memcpy(&narrow, from, sizeof narrow);
    if constexpr (converts_at_once<T, Bytes>)
      widen<Bytes>(narrow, floats);
    else
      T::format::decode(__builtin_convertvector(narrow, lanes<std::int32_t, Bytes>), floats);
  }
}

/// The way back, rounded where that is narrow.
template <class T, std::size_t Bytes>
[[gnu::always_inline]] inline void store_floats(lanes<float, Bytes> const& floats, std::byte* to) noexcept {
  if constexpr (std::is_same_v<T, float>) {
    std::memcpy(to, &floats, Bytes);
  } else {
    using pattern = std::conditional_t<sizeof(T) == 1, std::int8_t, std::int16_t>;
    lanes<std::int32_t, Bytes> words;
    T::format::template encode<nan_sign::kept>(floats, words);
    auto const narrow = __builtin_convertvector(words, lanes<pattern, Bytes / 4 * sizeof(T)>);
    std::memcpy(to, &narrow, sizeof narrow);
  }
}

/// out[i] = function(in[i]), in float, as far as that fills registers; returns how many elements that were.
template <class Out, class In, std::size_t Bytes, class F>
[[gnu::always_inline]] inline std::size_t map_floats(F const& function, std::byte* out, std::byte const* in,
                                                     std::size_t count) noexcept {
  F const own = function;  // nothing else has its address, so that no store can change it
  constexpr std::size_t n = Bytes / sizeof(float);
  std::size_t i = 0;
  for (; i + n <= count; i += n) {
    float_lanes<Bytes> x;
    load_floats<In, Bytes>(in + i * sizeof(In), x.all);
    for (float& value : x.each) value = own(value);
    store_floats<Out, Bytes>(x.all, out + i * sizeof(Out));
  }
  return i;
}

template <class Out, class In, class F>
std::size_t map_baseline(F const& function, std::byte* out, std::byte const* in, std::size_t count) noexcept {
  return map_floats<Out, In, register_bytes(instruction_set::baseline)>(function, out, in, count);
}

#ifdef __x86_64__
template <class Out, class In, class F>
[[gnu::target("avx2,f16c"), gnu::flatten]] std::size_t map_avx2(F const& function, std::byte* out, std::byte const* in,
                                                                std::size_t count) noexcept {
  return map_floats<Out, In, register_bytes(instruction_set::avx2)>(function, out, in, count);
}
#endif

/// out[i] = Out(function(float(in[i]))) for narrow floats and floats; `out` may be `in` if Out is not wider than In.
template <class Out, class In, class F>
void map_in_float([[maybe_unused]] instruction_set set, F const& function, std::byte* out, std::byte const* in,
                  std::size_t count) noexcept {
  std::size_t i = 0;
  if constexpr (converts_lanes) {
#ifdef __x86_64__
    if (set != instruction_set::baseline) i = map_avx2<Out, In>(function, out, in, count);
#endif
    if (set == instruction_set::baseline) i = map_baseline<Out, In>(function, out, in, count);
  }
  for (; i < count; ++i)
    store(out + i * sizeof(Out), static_cast<Out>(function(static_cast<float>(load<In>(in + i * sizeof(In))))));
}

}  // namespace rondo::inline v0::detail
