#include "analysis.hpp"

#include "text.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace rondo::bench {
namespace {

void elect_leaders(panel& p) {
  row const* last = nullptr;
  for (auto& c : p.contests) {
    c.leader = c.best();
    if (c.leader == nullptr) continue;
    for (auto const* r : c.by_time)
      if (last != nullptr && r->algorithm == last->algorithm && r->p50_us <= level * c.leader->p50_us) c.leader = r;
    last = c.leader;
  }
}

}  // namespace

double contest::regret() const {
  if (automatic == nullptr || by_time.empty()) return not_measured;
  row const* own = automatic;
  for (auto const* r : by_time)
    if (r->algorithm == automatic->chosen) own = r;
  return own->p50_us / by_time.front()->p50_us;
}

regrets regrets_of(std::span<panel const> panels) {
  regrets all;
  std::vector<double> each;
  for (auto const& p : panels)
    for (auto const& c : p.contests) {
      double const regret = std::max(1.0, c.regret());
      if (!std::isfinite(c.regret())) continue;
      each.push_back(regret);
      if (all.worst_contest != nullptr && regret <= all.worst) continue;
      all.worst = regret;
      all.worst_contest = &c;
      all.worst_panel = &p;
    }
  all.count = each.size();
  all.mean = geometric_mean(each);
  return all;
}

std::vector<panel> panels_of(std::span<row const> rows) {
  std::vector<panel> panels;
  for (auto const& r : rows) {
    if (!r.workload.empty()) continue;
    auto p = std::find_if(panels.begin(), panels.end(),
                          [&](panel const& x) { return x.transport == r.transport && x.ranks == r.ranks; });
    if (p == panels.end()) p = panels.insert(p, {r.transport, r.ranks, {}});
    auto c = std::find_if(p->contests.begin(), p->contests.end(), [&](contest const& x) { return x.bytes == r.bytes; });
    if (c == p->contests.end()) {
      c = p->contests.insert(c, contest{});
      c->bytes = r.bytes;
    }
    if (r.algorithm == "automatic")
      c->automatic = &r;
    else
      c->by_time.push_back(&r);
    if (std::isfinite(r.limit_us)) c->limit_us = r.limit_us;
  }
  for (auto& p : panels) {
    std::sort(p.contests.begin(), p.contests.end(), [](auto const& a, auto const& b) { return a.bytes < b.bytes; });
    for (auto& c : p.contests)
      std::stable_sort(c.by_time.begin(), c.by_time.end(),
                       [](row const* a, row const* b) { return a->p50_us < b->p50_us; });
  }
  for (auto& p : panels) elect_leaders(p);
  return panels;
}

std::vector<reign> reigns_of(panel const& p) {
  std::vector<reign> reigns;
  for (auto const& c : p.contests) {
    if (c.leader == nullptr) continue;
    auto const& name = c.leader->algorithm;
    if (!reigns.empty() && reigns.back().algorithm == name)
      reigns.back().to = c.bytes;
    else
      reigns.push_back({name, c.bytes, c.bytes});
  }
  return reigns;
}

std::string describe(std::span<reign const> reigns) {
  if (reigns.empty()) return "nothing was measured";
  if (reigns.size() == 1) return reigns.front().algorithm + " at every size";
  std::string text;
  for (std::size_t i = 0; i < reigns.size(); ++i) {
    auto const& r = reigns[i];
    if (i > 0) text += ", ";
    if (i == 0)
      text += fmt::format("{} up to {}", r.algorithm, format_bytes(r.to));
    else if (i + 1 == reigns.size())
      text += fmt::format("{} from {}", r.algorithm, format_bytes(r.from));
    else
      text += r.from == r.to ? fmt::format("{} at {}", r.algorithm, format_bytes(r.from))
                             : fmt::format("{} from {} to {}", r.algorithm, format_bytes(r.from), format_bytes(r.to));
  }
  return text;
}

std::vector<std::string> algorithms_in(std::span<row const> rows) {
  std::vector<std::string> names;
  for (auto const& r : rows)
    if (std::find(names.begin(), names.end(), r.algorithm) == names.end()) names.push_back(r.algorithm);
  return names;
}

verdict_of_rows judge(std::span<row const> rows) {
  verdict_of_rows v;
  for (auto const& r : rows) {
    ++v.rows;
    v.checked += r.checked ? 1 : 0;
    v.wrong += r.wrong;
    v.unequal += r.hashes_equal ? 0 : 1;
  }
  return v;
}

}  // namespace rondo::bench
