#pragma once

#include "collective_kinds.hpp"
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
#include <rondo/schedule/schedule_ref.hpp>
#include <rondo/schedule/tree.hpp>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

namespace schedule_tools {

/// `ranks` in groups of `size`, the last one with what remains.
inline std::vector<int> groups_of(int ranks, int size) {
  std::vector<int> sizes;
  for (int left = ranks; left > 0; left -= size) sizes.push_back(std::min(left, size));
  return sizes;
}

/// `ranks` in groups of 1, 2, 3, 1, 2, 3, …
inline std::vector<int> uneven_groups(int ranks) {
  std::vector<int> sizes;
  for (int left = ranks; left > 0; left -= sizes.back())
    sizes.push_back(std::min(left, 1 + static_cast<int>(sizes.size() % 3)));
  return sizes;
}

using look_at_schedule = std::function<void(kind, schedule_ref const&, rank_t)>;
using look_at_schedules = std::function<void(int ranks, std::set<rank_t> const& roots, look_at_schedule const&)>;

/// Visits all families: visit(name, schedules_of), where schedules_of(ranks, roots, look) calls
/// look(kind, schedule, root) for whatever the family offers for so many ranks, in all the shapes worth a look.
inline void for_each_family(std::function<void(std::string const&, look_at_schedules const&)> const& visit) {
  auto const erased = [](look_at_schedule const& look) {
    return [&look](kind what, auto const& s, rank_t root) { look(what, schedule_ref(s), root); };
  };
  auto const plain = [&]<class Family>(std::type_identity<Family>) {
    visit(std::string(Family::name), [&](int ranks, std::set<rank_t> const& roots, look_at_schedule const& look) {
      if constexpr (requires { Family::valid(ranks); })
        if (!Family::valid(ranks)) return;
      for_each_schedule<Family>(roots, erased(look), ranks);
    });
  };
  plain(std::type_identity<ring>{});
  plain(std::type_identity<bidirectional_ring>{});
  plain(std::type_identity<tree>{});
  plain(std::type_identity<double_tree>{});
  plain(std::type_identity<binomial>{});
  plain(std::type_identity<recursive_doubling>{});
  plain(std::type_identity<recursive_halving>{});
  plain(std::type_identity<ordered_halving>{});
  plain(std::type_identity<direct>{});
  visit(std::string(mixed_radix::name), [&](int ranks, std::set<rank_t> const& roots, look_at_schedule const& look) {
    for (int const limit : {2, 5, 8})
      for_each_schedule<mixed_radix>(roots, erased(look), mixed_radix::radices(ranks, limit));
  });
  visit(std::string(hierarchical::name), [&](int ranks, std::set<rank_t> const& roots, look_at_schedule const& look) {
    for (auto const& sizes : {groups_of(ranks, 1), groups_of(ranks, 4), groups_of(ranks, ranks / 2 + 1),
                              groups_of(ranks, ranks), uneven_groups(ranks)})
      for (bool const pipelined : {false, true})
        if (hierarchical::groups::valid(sizes))
          for_each_schedule<hierarchical>(roots, erased(look), hierarchical::groups(sizes), pipelined);
  });
}

}  // namespace schedule_tools
