#include "simulate.hpp"

#include "algorithms.hpp"
#include "collective.hpp"
#include "schedule_by_name.hpp"
#include "text.hpp"
#include <rondo/schedule/cost.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <string>
#include <vector>

namespace rondo::bench {
namespace {

/// A cost that was found with the number of segments that makes it least.
struct prediction {
  double seconds = std::numeric_limits<double>::infinity();
  int segments = 1;
};

prediction predict(schedule_ref const& s, double bytes, link_cost const& wire) {
  prediction best;
  // The clock walks rounds x ranks x segments: enough to see a pipeline fill, not more.
  double const work = static_cast<double>(s.rounds()) * s.ranks();
  for (int segments = 1; segments <= 64 && work * segments < 2e7; segments *= 2) {
    if (segments > 1 && (s.period() == s.rounds() || bytes / segments < 1024)) break;
    double const t = cost(s, bytes, wire, segments).seconds;
    if (t < best.seconds) best = {t, segments};
  }
  return best;
}

struct line {
  std::string name;
  std::vector<prediction> by_size;
};

std::vector<line> predictions(collective what, int ranks, std::vector<std::size_t> const& sizes,
                              link_cost const& wire) {
  std::vector<line> lines;
  for (auto const how : algorithms_of({"all"}, what, ranks)) {
    auto& l = lines.emplace_back(line{std::string(to_string(how)), {}});
    with_schedule(how, what, ranks, 0, [&](schedule_ref const& s) {
      for (auto const bytes : sizes) l.by_size.push_back(predict(s, static_cast<double>(bytes), wire));
    });
  }
  return lines;
}

void print(collective what, int ranks, std::vector<std::size_t> const& sizes, std::vector<line> const& lines) {
  fmt::print("\n{}, {} ranks\n{:>20}", to_string(what), ranks, "");
  for (auto const bytes : sizes) fmt::print("{:>18}", format_bytes(bytes));
  fmt::print("\n");
  std::vector<double> best(sizes.size(), std::numeric_limits<double>::infinity());
  for (auto const& l : lines)
    for (std::size_t i = 0; i < sizes.size(); ++i) best[i] = std::min(best[i], l.by_size[i].seconds);
  for (auto const& l : lines) {
    fmt::print("{:>20}", l.name);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      auto const& [seconds, segments] = l.by_size[i];
      auto const text =
          fmt::format("{}{} {}", format_us(seconds * 1e6), segments > 1 ? fmt::format(" /{}", segments) : "",
                      seconds <= best[i] * 1.0001 ? '<' : ' ');
      fmt::print("{:>18}", text);
    }
    fmt::print("\n");
  }
}

}  // namespace

int simulate(simulate_options const& o) {
  auto const what = parse_collective(o.collective);
  if (what == collective::send_receive)
    throw usage_error("send_receive has no algorithms to compare: choose a collective.");
  link_cost const wire{o.alpha_us * 1e-6, 1e-9 / o.beta_GBps, 1e-9 / o.gamma_GBps};
  fmt::print("A message of n bytes takes {} us + n / {} GB/s, folding n / {} GB/s; the same link between all ranks, no "
             "contention.\n"
             "< fastest; /k: the buffer in k segments that overlap, the best number of those tried; - too many steps "
             "to simulate.\n"
             "Nothing is measured.\n",
             o.alpha_us, o.beta_GBps, o.gamma_GBps);
  for (int const ranks : o.ranks) print(what, ranks, o.bytes, predictions(what, ranks, o.bytes, wire));
  return 0;
}

}  // namespace rondo::bench
