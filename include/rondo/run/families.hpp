#pragma once

#include <rondo/algorithm.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>
#include <rondo/schedule/bidirectional_ring.hpp>
#include <rondo/schedule/binomial.hpp>
#include <rondo/schedule/direct.hpp>
#include <rondo/schedule/double_tree.hpp>
#include <rondo/schedule/hierarchical.hpp>
#include <rondo/schedule/mixed_radix.hpp>
#include <rondo/schedule/ordered_halving.hpp>
#include <rondo/schedule/recursive_doubling.hpp>
#include <rondo/schedule/recursive_halving.hpp>
#include <rondo/schedule/ring.hpp>
#include <rondo/schedule/terms.hpp>
#include <rondo/schedule/tree.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace rondo::inline v0::run {

template <class... Families>
struct family_list {};

/// The algorithms that can be chosen by name.
using families = family_list<ring, bidirectional_ring, tree, double_tree, recursive_doubling, recursive_halving,
                             ordered_halving, mixed_radix, binomial, hierarchical, direct>;

/// The schedule type by which Family does a collective, or void.
template <collective C, class Family>
constexpr auto schedule_of() noexcept {
  using enum collective;
  if constexpr (C == all_reduce && requires { typename Family::all_reduce; })
    return std::type_identity<typename Family::all_reduce>{};
  else if constexpr (C == reduce_scatter && requires { typename Family::reduce_scatter; })
    return std::type_identity<typename Family::reduce_scatter>{};
  else if constexpr (C == all_gather && requires { typename Family::all_gather; })
    return std::type_identity<typename Family::all_gather>{};
  else if constexpr (C == broadcast && requires { typename Family::broadcast; })
    return std::type_identity<typename Family::broadcast>{};
  else if constexpr (C == reduce && requires { typename Family::reduce; })
    return std::type_identity<typename Family::reduce>{};
  else if constexpr (C == all_to_all && requires { typename Family::all_to_all; })
    return std::type_identity<typename Family::all_to_all>{};
  else if constexpr (C == gather && requires { typename Family::gather; })
    return std::type_identity<typename Family::gather>{};
  else if constexpr (C == scatter && requires { typename Family::scatter; })
    return std::type_identity<typename Family::scatter>{};
  else if constexpr (C == barrier && requires { typename Family::barrier; })
    return std::type_identity<typename Family::barrier>{};
  else
    return std::type_identity<void>{};
}

template <collective C, class Family>
using schedule_t = typename decltype(schedule_of<C, Family>())::type;

/// What a family may have to know besides the number of ranks.
struct world_shape {
  int ranks;
  std::vector<int> hosts;  ///< ranks of each host, in the order of ranks; one entry if they are not consecutive
};

/// Does Family offer the collective for this many ranks?
template <collective C, class Family>
constexpr bool offers(int n) noexcept {
  if constexpr (std::is_void_v<schedule_t<C, Family>>)
    return false;
  else if constexpr (requires { Family::valid(n); })
    return Family::valid(n);
  else
    return true;
}

/// Groups for the hierarchical algorithm: the hosts, or on one host runs of about the square root of its ranks.
inline std::vector<int> groups_of(world_shape const& shape) {
  if (shape.hosts.size() > 1 && shape.hosts.size() <= hierarchical::groups::max_count) return shape.hosts;
  int each = 1;
  while ((each + 1) * (each + 1) <= shape.ranks || (shape.ranks + each - 1) / each > hierarchical::groups::max_count)
    ++each;
  std::vector<int> sizes(static_cast<std::size_t>(shape.ranks / each), each);
  for (int i = 0; i < shape.ranks % each; ++i) ++sizes[static_cast<std::size_t>(i) % sizes.size()];
  return sizes;
}

/// The name of a family as an algorithm; custom for one of the user's.
template <class Family>
constexpr algorithm named() noexcept {
  if constexpr (requires { std::string_view(Family::name); })
    for (auto const& [value, name] : detail::algorithm_names)
      if (name == Family::name) return value;
  return algorithm::custom;
}

/// Family's schedule of the collective for buffers of so many bytes. Throws invalid_argument if it does not work for
/// this many ranks.
template <collective C, class Family>
schedule_t<C, Family> make_schedule(world_shape const& shape, rank_t root, std::size_t bytes) {
  using S = schedule_t<C, Family>;
  if (!offers<C, Family>(shape.ranks))
    throw invalid_argument(detail::text_of({to_string(named<Family>()), " does not work for ", shape.ranks,
                                            " ranks: use a number of ranks that it allows, or another algorithm"}));
  if constexpr (std::is_same_v<Family, hierarchical>) {
    S s{hierarchical::groups(groups_of(shape))};
    s.pipelined = bytes / static_cast<std::size_t>(s.chunks()) >= detail::pipelined_bytes;
    return s;
  } else if constexpr (requires { S{shape.ranks, root}; })
    return S{shape.ranks, root};
  else
    return S{shape.ranks};
}

template <collective C, class F, class... Families>
void visit_family(algorithm a, F&& f, family_list<Families...>) {
  auto const visit = [&]<class Family>(std::type_identity<Family> tag) {
    if constexpr (!std::is_void_v<schedule_t<C, Family>>) {
      if (to_string(a) != Family::name) return false;
      f(tag);
      return true;
    }
    return false;
  };
  if (!(visit(std::type_identity<Families>{}) || ...))
    throw invalid_argument(detail::text_of({to_string(a), " does not offer ", to_string(C),
                                            ": choose another algorithm or leave the choice to rondo (automatic)"}));
}

/// Calls f with the schedule by which the algorithm does the collective on buffers of so many bytes. Throws
/// invalid_argument if it does not offer it.
template <collective C, class F>
void with_schedule(algorithm a, world_shape const& shape, rank_t root, std::size_t bytes, F&& f) {
  visit_family<C>(
      a, [&]<class Family>(std::type_identity<Family>) { f(make_schedule<C, Family>(shape, root, bytes)); },
      families{});
}

}  // namespace rondo::inline v0::run

namespace rondo::inline v0 {

namespace detail {

template <collective C, class... Families>
bool offered(algorithm a, int ranks, run::family_list<Families...>) noexcept {
  return ((to_string(a) == Families::name && run::offers<C, Families>(ranks)) || ...);
}

}  // namespace detail

/// Does the algorithm offer the collective for this number of ranks? A direct all_reduce takes memory that all share.
inline bool supports(algorithm a, collective c, int ranks, bool shared_memory = false) noexcept {
  using enum collective;
  if (a == algorithm::direct && c == all_reduce) return shared_memory && ranks > 1;
  if (a == algorithm::automatic) return true;
  auto const ask = [&]<collective C>() { return detail::offered<C>(a, ranks, run::families{}); };
  switch (c) {
    case all_reduce: return ask.template operator()<all_reduce>();
    case reduce_scatter: return ask.template operator()<reduce_scatter>();
    case all_gather: return ask.template operator()<all_gather>();
    case broadcast: return ask.template operator()<broadcast>();
    case reduce: return ask.template operator()<reduce>();
    case all_to_all: return ask.template operator()<all_to_all>();
    case gather: return ask.template operator()<gather>();
    case scatter: return ask.template operator()<scatter>();
    case barrier: return ask.template operator()<barrier>();
    case send_receive: return false;
  }
  return false;
}

}  // namespace rondo::inline v0
