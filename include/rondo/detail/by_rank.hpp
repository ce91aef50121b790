#pragma once

#include <rondo/types.hpp>

#include <cstddef>
#include <utility>

namespace rondo::inline v0::detail {

/// The entry of a rank in a sequence that has one for each.
template <class Sequence>
constexpr decltype(auto) by_rank(Sequence&& all, rank_t rank) noexcept {
  return std::forward<Sequence>(all)[static_cast<std::size_t>(rank)];
}

}  // namespace rondo::inline v0::detail
