#pragma once

#include <rondo/schedule/verify.hpp>

#include <array>
#include <cstddef>
#include <set>

/// A family's schedules, one after the other, each with the proof that belongs to it.
namespace schedule_tools {

using namespace rondo;

enum class kind { all_reduce, reduce_scatter, all_gather, broadcast, reduce, all_to_all, gather, scatter, barrier };

constexpr char const* name_of(kind what) {
  constexpr std::array<char const*, 9> names{"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce",
                                             "all_to_all", "gather",         "scatter",    "barrier"};
  return names[static_cast<std::size_t>(what)];
}

template <proof P = proof::expressions, schedule S>
constexpr verdict verify_as(kind what, S const& s, rank_t root) {
  switch (what) {
    case kind::all_reduce: return verify_all_reduce<P>(s);
    case kind::reduce_scatter: return verify_reduce_scatter<P>(s);
    case kind::all_gather: return verify_all_gather<P>(s);
    case kind::broadcast: return verify_broadcast<P>(s, root);
    case kind::reduce: return verify_reduce<P>(s, root);
    case kind::all_to_all: return verify_all_to_all<P>(s);
    case kind::gather: return verify_gather<P>(s, root);
    case kind::scatter: return verify_scatter<P>(s, root);
    case kind::barrier: return verify_barrier(s);
  }
  return {flaw::bad_shape};
}

/// The roots worth a look: the ends, their neighbours, the middle.
inline std::set<rank_t> some_roots(int n) { return {0, n > 1 ? 1 : 0, n / 2, n > 1 ? n - 2 : 0, n - 1}; }

/// look(kind, schedule, root) for whatever the family offers: S{shape…}, or S{shape…, root} for each of the roots.
template <class Family, class Look, class... Shape>
void for_each_schedule(std::set<rank_t> const& roots, Look look, Shape... shape) {
  if constexpr (requires { typename Family::all_reduce; })
    look(kind::all_reduce, typename Family::all_reduce{shape...}, rank_t{0});
  if constexpr (requires { typename Family::reduce_scatter; })
    look(kind::reduce_scatter, typename Family::reduce_scatter{shape...}, rank_t{0});
  if constexpr (requires { typename Family::all_gather; })
    look(kind::all_gather, typename Family::all_gather{shape...}, rank_t{0});
  if constexpr (requires { typename Family::all_to_all; })
    look(kind::all_to_all, typename Family::all_to_all{shape...}, rank_t{0});
  if constexpr (requires { typename Family::barrier; })
    look(kind::barrier, typename Family::barrier{shape...}, rank_t{0});
  for (rank_t const root : roots) {
    if constexpr (requires { typename Family::broadcast; })
      look(kind::broadcast, typename Family::broadcast{shape..., root}, root);
    if constexpr (requires { typename Family::reduce; })
      look(kind::reduce, typename Family::reduce{shape..., root}, root);
    if constexpr (requires { typename Family::gather; })
      look(kind::gather, typename Family::gather{shape..., root}, root);
    if constexpr (requires { typename Family::scatter; })
      look(kind::scatter, typename Family::scatter{shape..., root}, root);
  }
}

}  // namespace schedule_tools
