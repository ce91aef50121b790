#include "timeline.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

namespace rondo::bench {
namespace {

std::string chunks_of(slice what, int chunks) {
  if (what.count == 0) return "-";
  if (what.count == chunks && chunks > 1) return "all";
  if (what.count == 1) return std::to_string(what.first);
  return fmt::format("{}-{}", what.first, (what.first + what.count - 1) % chunks);
}

std::string cell(step const& s, int chunks) {
  if (s.from == nobody) return s.to == nobody ? "" : ".";
  return fmt::format("{}<{} {}{}", chunks_of(s.in, chunks), s.from, s.how == merge::overwrite ? '=' : '+',
                     s.completes ? "*" : "");
}

}  // namespace

std::string timeline(schedule_ref const& s) {
  constexpr int most_ranks = 24;
  int const shown = std::min(s.ranks(), most_ranks);
  std::vector<std::vector<std::string>> cells;
  std::size_t width = 7;
  for (int i = 0; i < s.rounds(); ++i) {
    auto& line = cells.emplace_back();
    for (rank_t r = 0; r < shown; ++r) {
      line.push_back(cell(s.at(r, i), s.chunks()));
      width = std::max(width, line.back().size());
    }
  }
  auto text = fmt::format("{:>6}", "round");
  for (rank_t r = 0; r < shown; ++r) text += fmt::format("  {:<{}}", fmt::format("rank {}", r), width);
  text += '\n';
  for (std::size_t i = 0; i < cells.size(); ++i) {
    auto line = fmt::format("{:>6}", i);
    for (auto const& c : cells[i]) line += fmt::format("  {:<{}}", c, width);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  text += "\nchunks<sender, + folded, = overwritten, * final from now on, . sends only\n";
  if (shown < s.ranks()) text += fmt::format("The first {} of {} ranks are shown.\n", shown, s.ranks());
  return text;
}

}  // namespace rondo::bench
