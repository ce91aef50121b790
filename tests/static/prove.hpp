#pragma once

#include "../unit/collective_kinds.hpp"

#include <utility>

/// Proofs by the compiler. Each schedule is a constant of its own, since compilers limit the steps of one evaluation.
namespace static_proofs {

using namespace rondo;
using schedule_tools::kind;
using schedule_tools::verify_as;

template <kind What, class S, int Ranks>
inline constexpr bool right = static_cast<bool>(verify_as(What, S{Ranks}, 0));

/// From the rank in the middle; the other roots are left to the tests at run time.
template <kind What, class S, int Ranks>
inline constexpr bool right_from_middle = static_cast<bool>(verify_as(What, S{Ranks, Ranks / 2}, Ranks / 2));

/// Whatever the family offers for this number of ranks.
template <class Family, int Ranks>
consteval bool proved() {
  if constexpr (requires { Family::valid(Ranks); })
    if (!Family::valid(Ranks)) return true;
  bool all = true;
  if constexpr (requires { typename Family::all_reduce; })
    all = all && right<kind::all_reduce, typename Family::all_reduce, Ranks>;
  if constexpr (requires { typename Family::reduce_scatter; })
    all = all && right<kind::reduce_scatter, typename Family::reduce_scatter, Ranks>;
  if constexpr (requires { typename Family::all_gather; })
    all = all && right<kind::all_gather, typename Family::all_gather, Ranks>;
  if constexpr (requires { typename Family::all_to_all; })
    all = all && right<kind::all_to_all, typename Family::all_to_all, Ranks>;
  if constexpr (requires { typename Family::barrier; })
    all = all && right<kind::barrier, typename Family::barrier, Ranks>;
  if constexpr (requires { typename Family::broadcast; })
    all = all && right_from_middle<kind::broadcast, typename Family::broadcast, Ranks>;
  if constexpr (requires { typename Family::reduce; })
    all = all && right_from_middle<kind::reduce, typename Family::reduce, Ranks>;
  if constexpr (requires { typename Family::gather; })
    all = all && right_from_middle<kind::gather, typename Family::gather, Ranks>;
  if constexpr (requires { typename Family::scatter; })
    all = all && right_from_middle<kind::scatter, typename Family::scatter, Ranks>;
  return all;
}

/// From 1 to 16 ranks.
template <class Family>
consteval bool proved_to_16() {
  return []<int... I>(std::integer_sequence<int, I...>) { return (... && proved<Family, I + 1>()); }
  (std::make_integer_sequence<int, 16>{});
}

}  // namespace static_proofs
