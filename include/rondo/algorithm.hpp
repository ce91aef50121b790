#pragma once

#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace rondo::inline v0 {

/// Names of the algorithms that come with rondo, for choosing one at run time. Each is also a type, `rondo::ring`, … .
enum class algorithm : std::uint8_t {
  automatic,  ///< chosen by `select` from bytes, ranks and link
  ring,
  bidirectional_ring,
  tree,
  double_tree,
  recursive_doubling,
  recursive_halving,
  ordered_halving,
  mixed_radix,
  binomial,
  hierarchical,
  direct,
  custom  ///< a type of the user's
};

enum class collective : std::uint16_t {
  all_reduce = 1,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter,
  barrier,
  send_receive
};

namespace detail {

inline constexpr std::array<std::pair<algorithm, std::string_view>, 13> algorithm_names{
    {{algorithm::automatic, "automatic"},
     {algorithm::ring, "ring"},
     {algorithm::bidirectional_ring, "bidirectional_ring"},
     {algorithm::tree, "tree"},
     {algorithm::double_tree, "double_tree"},
     {algorithm::recursive_doubling, "recursive_doubling"},
     {algorithm::recursive_halving, "recursive_halving"},
     {algorithm::ordered_halving, "ordered_halving"},
     {algorithm::mixed_radix, "mixed_radix"},
     {algorithm::binomial, "binomial"},
     {algorithm::hierarchical, "hierarchical"},
     {algorithm::direct, "direct"},
     {algorithm::custom, "custom"}}};

inline constexpr std::array<std::pair<collective, std::string_view>, 10> collective_names{
    {{collective::all_reduce, "all_reduce"},
     {collective::reduce_scatter, "reduce_scatter"},
     {collective::all_gather, "all_gather"},
     {collective::broadcast, "broadcast"},
     {collective::reduce, "reduce"},
     {collective::all_to_all, "all_to_all"},
     {collective::gather, "gather"},
     {collective::scatter, "scatter"},
     {collective::barrier, "barrier"},
     {collective::send_receive, "send_receive"}}};

template <class Table, class Value>
constexpr std::string_view name_in(Table const& table, Value value) noexcept {
  for (auto const& [v, name] : table)
    if (v == value) return name;
  return "unknown";
}

template <class Table>
auto value_in(Table const& table, std::string_view name, char const* what) {
  std::string all;
  for (auto const& [value, known] : table) {
    if (known == name) return value;
    all += text_of({all.empty() ? "" : ", ", known});
  }
  throw invalid_argument(text_of({"there is no ", what, " called '", name, "': use one of ", all}));
}

}  // namespace detail

constexpr std::string_view to_string(algorithm a) noexcept { return detail::name_in(detail::algorithm_names, a); }
constexpr std::string_view to_string(collective c) noexcept { return detail::name_in(detail::collective_names, c); }

/// The algorithm of that name; throws invalid_argument listing the names if there is none.
inline algorithm algorithm_from(std::string_view name) {
  return detail::value_in(detail::algorithm_names, name, "algorithm");
}

/// The collective of that name; throws invalid_argument listing the names if there is none.
inline collective collective_from(std::string_view name) {
  return detail::value_in(detail::collective_names, name, "collective");
}

}  // namespace rondo::inline v0
