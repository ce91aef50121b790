#pragma once

#include <rondo/config.hpp>
#include <rondo/fused/epilogue.hpp>

#include <cstddef>
#include <utility>

namespace rondo::inline v0 {

/// Two epilogues as one, see then().
template <class First, class Second>
struct epilogue_chain {
  static constexpr bool independent = detail::is_independent<First> && detail::is_independent<Second>;

  First first;
  Second second;

  template <class A>
  RONDO_HD constexpr auto operator()(std::size_t i, A const& value) const noexcept {
    return second(i, first(i, value));
  }
};

/// The epilogue that hands what `first` makes of a value to `second`.
template <class First, class Second>
constexpr epilogue_chain<First, Second> then(First first, Second second) {
  return {std::move(first), std::move(second)};
}

}  // namespace rondo::inline v0
