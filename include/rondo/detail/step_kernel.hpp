#pragma once

#include <rondo/detail/instruction_set.hpp>
#include <rondo/detail/lanes.hpp>
#include <rondo/detail/map_kernel.hpp>
#include <rondo/fused/optimizer.hpp>

#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

namespace rondo::inline v0::detail {

/// Where the numbers of the elements of one step lie.
template <std::size_t Moments>
struct step_operands {
  float const* gradient;
  float factor;  ///< that the gradient is multiplied with first
  float* weight;
  std::array<float*, Moments> moments;
  std::byte* out;  ///< the new weights once more, in the type in which they are used; any alignment

  /// Those from element `n` on, with `to` in the place of `out`.
  [[gnu::always_inline]] step_operands from(std::size_t n, std::byte* to) const noexcept {
    step_operands rest = *this;
    rest.gradient += n, rest.weight += n, rest.out = to;
    for (float*& m : rest.moments) m += n;
    return rest;
  }
};

/// Updates a register of elements, of which the first `count` exist.
template <class U, std::size_t Bytes, class Update, std::size_t... K>
[[gnu::always_inline]] inline void step_register(Update const& update, step_operands<sizeof...(K)> const& at,
                                                 [[maybe_unused]] std::size_t count,
                                                 std::index_sequence<K...>) noexcept {
  float_lanes<Bytes> gradient, weight;
  [[maybe_unused]] float_lanes<Bytes> moments[sizeof...(K) + 1];
  std::memcpy(&gradient, at.gradient, Bytes);
  std::memcpy(&weight, at.weight, Bytes);
  (std::memcpy(&moments[K], at.moments[K], Bytes), ...);
  gradient.all = gradient.all * at.factor;
  if constexpr (takes_lanes<Update>)
    update(gradient.all, weight.all, moments[K].all...);
  else
    for (std::size_t k = 0; k < count; ++k) update(gradient.each[k], weight.each[k], moments[K].each[k]...);
  std::memcpy(at.weight, &weight, Bytes);
  (std::memcpy(at.moments[K], &moments[K], Bytes), ...);
  store_floats<U, Bytes>(weight.all, at.out);
}

/// Updates `count` elements. The last ones are copied to a register of their own, so that all are computed alike.
template <class U, std::size_t Bytes, class Update, std::size_t... K>
[[gnu::always_inline]] inline void step_registers(Update const& update, step_operands<sizeof...(K)> const& all,
                                                  std::size_t count, std::index_sequence<K...> moments) noexcept {
  Update const own = update;  // nothing else has its address, so that no store can change it
  constexpr std::size_t n = Bytes / sizeof(float);
  std::size_t i = 0;
  for (; i + n <= count; i += n) step_register<U, Bytes>(own, all.from(i, all.out + i * sizeof(U)), n, moments);
  if (i == count) return;
  std::size_t const left = count - i;
  auto const last = all.from(i, all.out + i * sizeof(U));
  float gradient[n] = {}, weight[n] = {};
  [[maybe_unused]] float m[sizeof...(K) + 1][n] = {};
  std::byte out[n * sizeof(U)];
  std::memcpy(gradient, last.gradient, left * sizeof(float));
  std::memcpy(weight, last.weight, left * sizeof(float));
  (std::memcpy(m[K], last.moments[K], left * sizeof(float)), ...);
  step_register<U, Bytes>(own, step_operands<sizeof...(K)>{gradient, all.factor, weight, {m[K]...}, out}, left,
                          moments);
  std::memcpy(last.weight, weight, left * sizeof(float));
  (std::memcpy(last.moments[K], m[K], left * sizeof(float)), ...);
  std::memcpy(last.out, out, left * sizeof(U));
}

#ifdef __x86_64__
template <class U, class Update, std::size_t K>
[[gnu::target("avx2,f16c"), gnu::flatten]] void step_avx2(Update const& update, step_operands<K> const& all,
                                                          std::size_t count) noexcept {
  step_registers<U, register_bytes(instruction_set::avx2)>(update, all, count, std::make_index_sequence<K>{});
}
#endif

/// weight, moments = update(factor * gradient), out = U(weight), for `count` elements, with the instructions of `set`.
template <class U, class Update, std::size_t K>
void step_with(instruction_set set, Update const& update, step_operands<K> const& all, std::size_t count) noexcept {
#ifdef __x86_64__
  if (set != instruction_set::baseline) return step_avx2<U>(update, all, count);
#endif
  step_registers<U, register_bytes(instruction_set::baseline)>(update, all, count, std::make_index_sequence<K>{});
}

}  // namespace rondo::inline v0::detail
