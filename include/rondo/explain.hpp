#pragma once

#include <rondo/algorithm.hpp>
#include <rondo/detail/insertion_sort.hpp>
#include <rondo/policy.hpp>
#include <rondo/select.hpp>
#include <rondo/transport.hpp>
#include <rondo/types.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

namespace detail {

/// Three digits and a unit: "8 B", "64 KiB", "1.5 MiB".
inline std::string bytes_in_words(std::uint64_t bytes) {
  constexpr char const* units[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  std::size_t unit = 0;
  auto tenths = bytes;  // of the unit, once it is not bytes
  for (std::uint64_t value = bytes; value >= 1024 && unit < 4; value /= 1024, ++unit) tenths = value * 10 / 1024;
  if (unit == 0) return std::to_string(bytes) + units[0];
  bool const whole = tenths % 10 == 0 || tenths >= 1000;
  return std::to_string(tenths / 10) + (whole ? "" : "." + std::to_string(tenths % 10)) + units[unit];
}

/// "9.4 us", "1.2 ms".
inline std::string time_in_words(double us) {
  bool const long_time = us >= 1000;
  auto const tenths = static_cast<long long>((long_time ? us / 100 : us * 10) + 0.5);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + (long_time ? " ms" : " us");
}

/// "rank 1", "ranks 0-2, 5".
inline std::string ranks_in_words(std::vector<rank_t> const& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t first = 0, last; first < ranks.size(); first = last + 1) {
    for (last = first; last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1;) ++last;
    text += (first == 0 ? "" : ", ") + std::to_string(ranks[first]);
    if (last > first) text += (last > first + 1 ? "-" : ", ") + std::to_string(ranks[last]);
  }
  return text;
}

inline std::string explain_line(policy::line const& l, std::string const& file) {
  std::string text = "  by the policy " + file + ": measured " + time_in_words(l.microseconds) + " at " +
                     bytes_in_words(l.bytes) + " on " + std::to_string(l.ranks) + " ranks";
  if (l.runner_up != algorithm::automatic)
    text +=
        ", the next was " + std::string(to_string(l.runner_up)) + " with " + time_in_words(l.runner_up_microseconds);
  return text + "; the line holds " +
         (l.up_to == policy::any_size ? "for all larger buffers" : "up to " + bytes_in_words(l.up_to));
}

/// "3 messages one after the other, 1 KiB sent, 512 B folded; alpha 9.00 us, …".
inline std::string terms_in_words(terms const& t, link_constants const& c) {
  auto const decimal = [](std::uint64_t thousandths) {
    auto const cents = std::to_string(thousandths % 1000 / 10);
    return std::to_string(thousandths / 1000) + (cents.size() < 2 ? ".0" : ".") + cents;
  };
  return std::to_string(t.rounds) + (t.rounds == 1 ? " message" : " messages one after the other") +
         (t.more > 0 ? " and " + std::to_string(t.more) + " more" : "") + ", " + bytes_in_words(t.sent) + " sent, " +
         bytes_in_words(t.folded) + " folded; alpha " + decimal(c.alpha) + " us, gap " + decimal(c.gap) + " us, beta " +
         decimal(c.beta) + " ns/B" + (crossing(t.paths) > 100 ? " x " + decimal(crossing(t.paths) * 10) : "") +
         ", gamma " + decimal(c.gamma) + " ns/B";
}

inline std::string explain_model(situation const& s, algorithm chosen) {
  std::vector<std::pair<std::uint64_t, algorithm>> others;
  for (algorithm const a : scheduled_algorithms)
    if (a != chosen && admits(s, a)) others.emplace_back(predicted(s, a, s.bytes), a);
  insertion_sort(others, [](auto const& a, auto const& b) { return a.first < b.first; });
  auto const forecast = [](algorithm a, std::uint64_t picoseconds) {
    return std::string(to_string(a)) + " " + time_in_words(static_cast<double>(picoseconds) * 1e-6);
  };
  std::string text = "  by the model: ";
  if (s.hosts > 1 && chosen == algorithm::hierarchical) {
    host_terms const h = host_terms_of(s, s.bytes);
    text += "within a host " + terms_in_words(h.inside, constants_of(s.link_inside, s.turns)) + "\n  between hosts " +
            terms_in_words(h.between, constants_of(s.link, s.turns));
  } else {
    text += terms_in_words(terms_of(chosen, s.collective, s.ranks, s.bytes), constants_of(s.link, s.turns));
  }
  text += "\n  predicted: " + forecast(chosen, predicted(s, chosen, s.bytes));
  for (std::size_t i = 0; i < std::min<std::size_t>(2, others.size()); ++i)
    text += ", " + forecast(others[i].second, others[i].first);
  return text;
}

}  // namespace detail

/// How the transport connects its rank with the others, by its member explain(peer) where it has that: one line for all
/// that are connected alike, without a line break at the end.
template <transport X>
std::string explain(X const& x) {
  std::vector<std::pair<std::string, std::vector<rank_t>>> ways;
  for (rank_t q = 0; q < x.size(); ++q) {
    if (q == x.rank()) continue;
    std::string way(transport_name(x));
    if constexpr (requires { std::string(x.explain(q)); }) way = x.explain(q);
    auto const known = std::find_if(ways.begin(), ways.end(), [&](auto const& w) { return w.first == way; });
    if (known != ways.end())
      known->second.push_back(q);
    else
      ways.push_back({way, {q}});
  }
  std::string text = "rank " + std::to_string(x.rank()) + " of " + std::to_string(x.size()) + " is connected";
  for (auto const& [way, ranks] : ways)
    text += (ways.size() > 1 ? "\n  with " : " with ") + detail::ranks_in_words(ranks) + " by " +
            (way.empty() ? "a transport without a name" : way);
  return ways.empty() ? text + " with nobody" : text;
}

/// What `automatic` means in that situation, over the transport with that name, and why: two or three lines without a
/// line break at the end. `measured` may be nullptr. `one_hop` are the bytes up to which an all_reduce through shared
/// memory takes one hop; 0: unknown.
inline std::string explain(situation const& s, std::string_view transport, policy const* measured = nullptr,
                           std::size_t one_hop = 0) {
  std::string const subject = std::string(to_string(s.collective)) + " of " + detail::bytes_in_words(s.bytes) + " on " +
                              std::to_string(s.ranks) + " ranks" +
                              (transport.empty() ? "" : " over " + std::string(transport)) + ": ";
  if (s.collective == collective::send_receive)
    return subject + "direct\n  because a message has one way: from its sender to its receiver";
  if (measured)
    if (auto const* l = line_for(measured->lines_for(s.collective, transport, s.ranks), s.bytes);
        l && admits(s, l->algorithm))
      return subject + std::string(to_string(l->algorithm)) + "\n" + detail::explain_line(*l, measured->name());
  algorithm const a = select(s);
  if (a == algorithm::direct && s.collective == collective::all_reduce)
    return subject + "direct\n  because the ranks share memory: " +
           (one_hop == 0 ? "one hop while it is small, two above"
                         : "one hop up to " + detail::bytes_in_words(one_hop) + ", two hops above");
  return subject + std::string(to_string(a)) + "\n" + detail::explain_model(s, a);
}

}  // namespace rondo::inline v0
