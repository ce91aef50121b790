#include "peers/table.hpp"

#include "text.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <iterator>

namespace rondo::bench::peers {
namespace {

bool is_limit(role r) { return r == role::limit; }
bool is_limit_in_place(role r) { return r == role::limit_in_place; }
bool is_registered(role r) { return r == role::registered; }
bool is_plain(role r) { return r == role::plain; }
bool is_stream(role r) { return r == role::stream; }
bool is_peer(role r) { return r == role::peer || r == role::peer_stream; }

std::vector<double> times_of(entry const& e) {
  std::vector<double> times;
  for (auto const& c : e.cells) times.push_back(c.time());
  return times;
}

/// 0.183, 1.02, 45.1, 2285: three digits, no fewer than the integer part.
std::string number(double value) {
  if (!std::isfinite(value)) return "-";
  return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

std::string line(std::string const& name, std::vector<std::string> const& cells) {
  auto text = fmt::format("{:<34}", name);
  for (auto const& c : cells) fmt::format_to(std::back_inserter(text), "{:>9}", c);
  return text + '\n';
}

template <class Values, class Format>
std::string line_of(std::string const& name, Values const& values, Format&& format) {
  std::vector<std::string> cells;
  for (auto const& v : values) cells.push_back(format(v));
  return line(name, cells);
}

}  // namespace

std::vector<double> best_of(std::vector<entry> const& entries, bool (*of)(role)) {
  std::vector<double> best;
  for (auto const& e : entries) {
    if (!of(e.what)) continue;
    best.resize(std::max(best.size(), e.cells.size()), not_measured);
    for (std::size_t i = 0; i < e.cells.size(); ++i) best[i] = std::fmin(best[i], e.cells[i].time());
  }
  return best;
}

std::vector<ratio> ratios_of(std::vector<entry> const& entries) {
  std::vector<ratio> ratios;
  auto const add = [&](std::string name, std::vector<double> above, std::vector<double> const& below) {
    if (above.empty() || below.empty()) return;
    for (std::size_t i = 0; i < above.size(); ++i) above[i] = i < below.size() ? above[i] / below[i] : not_measured;
    ratios.push_back({std::move(name), std::move(above)});
  };
  add("rondo, registered / limit", best_of(entries, is_registered), best_of(entries, is_limit));
  add("rondo, registered / limit in place", best_of(entries, is_registered), best_of(entries, is_limit_in_place));
  add("rondo / best peer", best_of(entries, is_plain), best_of(entries, is_peer));
  for (auto const& e : entries)
    if (e.what == role::peer_stream)
      add(fmt::format("rondo over TCP / {}", e.name.substr(0, e.name.find(" over TCP"))), best_of(entries, is_stream),
          times_of(e));
  return ratios;
}

std::string table_of(std::vector<std::size_t> const& sizes, std::vector<double> const& flag_ns,
                     std::vector<entry> const& entries) {
  auto text = line_of("", sizes, [](std::size_t bytes) { return format_bytes(bytes); });
  text += line_of("round trip of a flag, ns", flag_ns,
                  [](double ns) { return std::isfinite(ns) ? fmt::format("{:.0f}", ns) : std::string("-"); });
  for (auto const& e : entries)
    text += line_of(e.name, e.cells, [](cell const& c) { return c.wrong ? std::string("WRONG") : number(c.us.p50); });
  for (auto const& r : ratios_of(entries)) text += line_of(r.name, r.values, number);
  return text;
}

}  // namespace rondo::bench::peers
