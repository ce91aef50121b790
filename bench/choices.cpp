#include "choices.hpp"

#include "analysis.hpp"
#include "text.hpp"
#include <rondo/select.hpp>

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace rondo::bench {
namespace {

/// A time of an algorithm in one contest, or nullptr.
row const* row_of(contest const& c, algorithm a) {
  for (auto const* r : c.by_time)
    if (r->algorithm == to_string(a)) return r;
  return nullptr;
}

/// Clearly faster: by the median, and not by luck, since the shortest times of both say the same.
bool beats(row const& r, row const& other) { return level * r.p50_us <= other.p50_us && r.min_us < other.min_us; }

/// Who gets the line: of those that beat the built-in choice the fastest, or the one of the next smaller size if it is
/// level with that.
row const* winner_of(contest const& c, algorithm built_in, policy::line const* smaller) {
  auto const* const own = row_of(c, built_in);
  auto const may_win = [&](row const* r) { return r != nullptr && (own == nullptr || beats(*r, *own)); };
  auto const first = std::find_if(c.by_time.begin(), c.by_time.end(), may_win);
  if (first == c.by_time.end()) return own;
  auto const* const same = smaller ? row_of(c, smaller->algorithm) : nullptr;
  return may_win(same) && same->p50_us < level * (*first)->p50_us ? same : *first;
}

policy::line line_of(contest const& c, row const* winner) {
  policy::line l;
  l.algorithm = algorithm_from(winner->algorithm);
  l.microseconds = winner->p50_us;
  for (auto const* r : c.by_time)
    if (r != winner) {
      l.runner_up = algorithm_from(r->algorithm);
      l.runner_up_microseconds = r->p50_us;
      break;
    }
  return l;
}

std::size_t halfway(std::size_t from, std::size_t to) {
  return static_cast<std::size_t>(std::sqrt(static_cast<double>(from) * static_cast<double>(to)));
}

/// The panels of one collective after the other.
std::vector<std::vector<row>> by_collective(std::span<row const> rows) {
  std::vector<std::vector<row>> all;
  for (auto const& r : rows) {
    auto found =
        std::find_if(all.begin(), all.end(), [&](auto const& x) { return x.front().collective == r.collective; });
    if (found == all.end()) found = all.insert(all.end(), std::vector<row>());
    found->push_back(r);
  }
  return all;
}

}  // namespace

std::vector<row> least_disturbed(std::span<row const> rows) {
  std::vector<row> least;
  for (auto const& r : rows) {
    auto const found = std::find_if(least.begin(), least.end(), [&](row const& x) {
      return x.collective == r.collective && x.transport == r.transport && x.ranks == r.ranks && x.bytes == r.bytes &&
             x.algorithm == r.algorithm;
    });
    if (found == least.end())
      least.push_back(r);
    else if (r.p50_us < found->p50_us)
      *found = r;
  }
  return least;
}

algorithm built_in_choice(policy::line const& l, int cores) {
  auto const kind = link_inside(l.transport);
  return select({.collective = l.collective,
                 .bytes = l.bytes,
                 .ranks = l.ranks,
                 .shared_memory = kind == link::shared_memory,
                 .turns = l.ranks > cores,
                 .link = kind});
}

std::vector<policy::line> lines_of(std::span<row const> rows, int cores) {
  std::vector<policy::line> lines;
  for (auto const& same : by_collective(rows))
    for (auto const& p : panels_of(same)) {
      policy::line place;
      place.collective = collective_from(same.front().collective);
      place.transport = p.transport;
      place.ranks = p.ranks;
      policy::line const* smaller = nullptr;
      lines.reserve(lines.size() + p.contests.size());
      for (std::size_t i = 0; i < p.contests.size(); ++i) {
        auto const& c = p.contests[i];
        if (c.by_time.empty()) continue;
        place.bytes = c.bytes;
        auto l = line_of(c, winner_of(c, built_in_choice(place, cores), smaller));
        l.collective = place.collective;
        l.transport = place.transport;
        l.ranks = place.ranks;
        l.bytes = c.bytes;
        l.up_to = i + 1 < p.contests.size() ? halfway(c.bytes, p.contests[i + 1].bytes) : policy::any_size;
        smaller = &lines.emplace_back(std::move(l));
      }
    }
  return lines;
}

std::vector<std::string> changes_in(std::span<policy::line const> lines, std::span<row const> rows, int cores) {
  std::vector<std::string> all;
  policy::line const* last = nullptr;
  for (auto const& l : lines) {
    auto const before = built_in_choice(l, cores);
    if (before == l.algorithm) continue;
    if (last == nullptr || last->collective != l.collective || last->transport != l.transport || last->ranks != l.ranks)
      all.push_back(fmt::format("{} over {}, {} ranks:", to_string(l.collective), l.transport, l.ranks));
    last = &l;
    auto const old = std::find_if(rows.begin(), rows.end(), [&](row const& r) {
      return r.collective == to_string(l.collective) && r.transport == l.transport && r.ranks == l.ranks &&
             r.bytes == l.bytes && r.algorithm == to_string(before);
    });
    all.back() += fmt::format("{} {} {} instead of {}", all.back().ends_with(':') ? "" : ";", format_bytes(l.bytes),
                              to_string(l.algorithm), to_string(before));
    if (old != rows.end()) all.back() += fmt::format(" ({:.2f}x)", old->p50_us / l.microseconds);
  }
  return all;
}

}  // namespace rondo::bench
