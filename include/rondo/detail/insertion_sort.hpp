#pragma once

#include <cstddef>
#include <utility>

namespace rondo::inline v0::detail {

/// Sorts a few things, or many that are in order but for a few; those that are equal keep their order. For what is not
/// worth the fifteen functions that std::stable_sort compiles to.
template <class Sequence, class Before>
constexpr void insertion_sort(Sequence& all, Before&& before) {
  for (std::size_t end = 1; end < all.size(); ++end)
    for (std::size_t at = end; at > 0 && before(all[at], all[at - 1]); --at) std::swap(all[at], all[at - 1]);
}

}  // namespace rondo::inline v0::detail
