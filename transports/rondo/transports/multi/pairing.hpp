#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/error.hpp>
#include <rondo/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// What one rank says to all before they decide by which transport each pair goes, as text:
///
///     the names of the transports
///     its host
///     a line for each transport: a character for each rank, + for one that it reaches by it, - for one that it does
///     not reach, x for one to which it may not use it
struct pair_reach {
  static constexpr char reached = '+', unreached = '-', forbidden = 'x';

  std::string host;
  std::vector<std::string> rows;

  std::string encode(std::string const& names) const {
    std::string text = names + '\n' + host;
    for (auto const& row : rows) text += '\n' + row;
    return text;
  }

  /// Throws connect_error, which names the rank, for one that has other transports.
  static pair_reach decode(std::string_view text, std::string const& names, std::size_t count, int ranks, rank_t from) {
    auto const who = "rank " + std::to_string(from);
    auto const line = [&] {
      auto const l = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(l.size() + 1, text.size()));
      return std::string(l);
    };
    pair_reach says;
    auto const theirs = line();
    says.host = line();
    while (!text.empty()) says.rows.push_back(line());
    bool const whole = says.rows.size() == count && std::all_of(says.rows.begin(), says.rows.end(), [&](auto const& r) {
                         return r.size() == static_cast<std::size_t>(ranks);
                       });
    if (theirs == names && whole) return says;
    throw connect_error(who + " connects by the transports " + theirs + ", this rank by " + names +
                            ": give every rank the same list of transports",
                        from);
  }
};

/// By which transport each pair of ranks goes. All ranks come to the same result, since they know the same.
class pairing {
 public:
  static constexpr std::uint8_t none = 255;

  /// `says` is what each rank has said. `local` says for each transport whether it works only within a host.
  pairing(std::vector<std::string_view> names, std::vector<bool> local, std::vector<pair_reach> says)
      : names_(std::move(names)), local_(std::move(local)), says_(std::move(says)), why_(names_.size()),
        via_(says_.size(), std::vector<std::uint8_t>(says_.size(), none)) {}

  /// The sets of ranks among which transport `i` is to connect each with each: every one has a pair that needs it. A
  /// transport connects all ranks of a set, so a pair that it could connect alone may be left to the next one.
  std::vector<std::vector<rank_t>> sets(std::size_t i) const {
    std::vector<std::vector<rank_t>> all;
    for (rank_t r = 0; r < size(); ++r) {
      auto const fits = [&](auto const& set) {
        return std::all_of(set.begin(), set.end(), [&](rank_t q) { return both_reach(i, q, r); });
      };
      if (auto const found = std::find_if(all.begin(), all.end(), fits); found != all.end())
        found->push_back(r);
      else
        all.push_back({r});
    }
    for (auto& set : all) {
      auto const whole = set;
      std::erase_if(set, [&](rank_t r) {
        return std::all_of(whole.begin(), whole.end(), [&](rank_t q) { return q == r || via(q, r) != none; });
      });
    }
    std::erase_if(all, [](auto const& set) { return set.empty(); });
    return all;
  }

  /// Notes what became of the sets of transport `i`: every rank says why it failed, or nothing.
  void settle(std::size_t i, std::vector<std::vector<rank_t>> const& sets, std::vector<std::string> outcomes) {
    for (auto const& set : sets) {
      auto const failed = std::find_if(set.begin(), set.end(), [&](rank_t r) { return !by_rank(outcomes, r).empty(); });
      for (rank_t const r : set) {
        if (failed != set.end()) {
          by_rank(outcomes, r) = by_rank(outcomes, *failed);
          continue;
        }
        for (rank_t const q : set)
          if (q != r && via(q, r) == none) by_rank(by_rank(via_, q), r) = static_cast<std::uint8_t>(i);
      }
    }
    why_[i] = std::move(outcomes);
  }

  std::uint8_t via(rank_t a, rank_t b) const noexcept { return by_rank(by_rank(via_, a), b); }

  /// Why transport `i` does not connect a pair.
  std::string objection(std::size_t i, rank_t a, rank_t b) const {
    auto const name = std::string(names_[i]);
    for (auto const& [from, to] : {std::pair(a, b), std::pair(b, a)})
      if (by_rank(row(i, from), to) == pair_reach::forbidden)
        return name + " is forbidden by rank " + std::to_string(from);
    if (local_[i] && by_rank(says_, a).host != by_rank(says_, b).host)
      return name + " is not for hosts that are called apart";
    if (!both_reach(i, a, b)) return name + " does not reach so far";
    if (!why_[i].empty())
      for (rank_t const r : {a, b})
        if (auto const& why = by_rank(why_[i], r); !why.empty()) return name + " failed: " + why;
    return name + " would also have to connect ranks that it does not";
  }

  /// The same for the transports before `end`, one after the other.
  std::string objections(std::size_t end, rank_t a, rank_t b) const {
    std::string text;
    for (std::size_t i = 0; i < end; ++i) text += (i == 0 ? "" : "; ") + objection(i, a, b);
    return text;
  }

  /// Throws connect_error for a pair that nothing connects.
  void require_all() const {
    for (rank_t a = 0; a < size(); ++a)
      for (rank_t b = a + 1; b < size(); ++b)
        if (via(a, b) == none)
          throw connect_error("nothing connects ranks " + std::to_string(a) + " and " + std::to_string(b) + ": " +
                                  objections(names_.size(), a, b),
                              b);
  }

  /// The lowest rank that `r` reaches by a transport within a host, perhaps itself; nobody if none was tried.
  rank_t host_leader(rank_t r) const noexcept {
    auto const tries = [&](std::size_t i) {
      return local_[i] && std::any_of(says_.begin(), says_.end(), [i](pair_reach const& s) {
               return s.rows[i].find_first_not_of(pair_reach::forbidden) != std::string::npos;
             });
    };
    bool tried = false;
    for (std::size_t i = 0; i < names_.size(); ++i) tried = tried || tries(i);
    if (!tried) return nobody;
    for (rank_t q = 0; q < r; ++q)
      if (auto const i = via(q, r); i != none && local_[i]) return q;
    return r;
  }

 private:
  int size() const noexcept { return static_cast<int>(says_.size()); }
  std::string const& row(std::size_t i, rank_t r) const noexcept { return by_rank(says_, r).rows[i]; }

  bool both_reach(std::size_t i, rank_t a, rank_t b) const noexcept {
    return by_rank(row(i, a), b) == pair_reach::reached && by_rank(row(i, b), a) == pair_reach::reached &&
           (!local_[i] || by_rank(says_, a).host == by_rank(says_, b).host);
  }

  std::vector<std::string_view> names_;
  std::vector<bool> local_;
  std::vector<pair_reach> says_;
  std::vector<std::vector<std::string>> why_;   // by transport and rank: why it failed
  std::vector<std::vector<std::uint8_t>> via_;  // by rank and rank: number of the transport
};

}  // namespace rondo::inline v0::detail
