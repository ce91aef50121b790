#pragma once

#include <rondo/fold.hpp>
#include <rondo/gradient/parameter.hpp>

#include <cstddef>
#include <type_traits>

namespace rondo::inline v0::detail {

/// Calls f(identity of the type of a gradient, identity of the type that it is added in).
template <class F>
void with_gradient_types(parameter const& p, F&& f) {
  with_real(p.gradient_type,
            [&]<class T>(std::type_identity<T> type) { f(type, std::type_identity<accumulator_t<T>>()); });
}

/// Puts `weight` times the gradient of a parameter into its place in a bucket, where it may lie already.
inline void pack_gradient(parameter const& p, double weight, std::byte* place) {
  with_gradient_types(p, [&]<class T, class A>(std::type_identity<T>, std::type_identity<A>) {
    auto const* const from = p.gradient ? static_cast<std::byte const*>(p.gradient) : place;
    A const factor = static_cast<A>(weight);
    if (factor != A(1))
      map_range<A, T>(place, from, p.count, [factor](A value) noexcept { return value * factor; });
    else if (from != place)
      convert_range<A, T>(place, from, p.count);
  });
}

/// Puts what lies in a bucket, divided by `divisor`, back as the gradient of its parameter, rounded once.
inline void unpack_gradient(parameter const& p, double divisor, std::byte* place) {
  with_gradient_types(p, [&]<class T, class A>(std::type_identity<T>, std::type_identity<A>) {
    auto* const to = p.gradient ? static_cast<std::byte*>(p.gradient) : place;
    A const by = static_cast<A>(divisor);
    if (by != A(1))
      map_range<T, A>(to, place, p.count, [by](A value) noexcept { return static_cast<A>(value / by); });
    else if (to != place)
      convert_range<T, A>(to, place, p.count);
  });
}

}  // namespace rondo::inline v0::detail
