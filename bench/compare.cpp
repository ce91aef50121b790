#include "compare.hpp"

#include "algorithms.hpp"
#include "analysis.hpp"
#include "console.hpp"
#include "cores.hpp"
#include "limit.hpp"
#include "machine.hpp"
#include "measure.hpp"
#include "perf.hpp"
#include "report.hpp"
#include "row.hpp"
#include "text.hpp"
#include "turns.hpp"
#include "world.hpp"
#include <rondo/version.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <thread>
#include <utility>

namespace rondo::bench {
namespace {

using clock = std::chrono::steady_clock;

constexpr char progress_mark = '~';
constexpr double never_pruned_us = 3000;  // below, all algorithms are measured at every size
constexpr std::size_t always_kept = 4;
constexpr double hopeless = 4;  // times the best: left out at the next size

double seconds_since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

std::vector<workload> gradient_buckets(compare_options const& options) {
  std::vector<workload> list;
  for (auto const& model : options.models)
    if (model != "none") list.push_back(workloads_of(model, datatype::float32, std::size_t{25} << 20).back());
  return list;
}

/// What one rank does for one transport and number of ranks. Algorithms take turns at each size, so that a disturbance
/// of the machine hits all of them; every decision follows from values that all ranks share.
class compare_body {
 public:
  compare_body(compare_options const& options, bool with_models, double seconds, std::vector<int> const& cores,
               member& me)
      : options_(options), with_models_(with_models), seconds_(seconds), cores_(cores),
        shop_(me, std::size_t{1} << 30) {}

  void run() {
    candidates_ = algorithms_of(options_.algorithms, options_.what, shop_.me().size(), shop_.me().transport);
    if (std::find(candidates_.begin(), candidates_.end(), algorithm::automatic) == candidates_.end())
      candidates_.push_back(algorithm::automatic);
    auto all_sizes = sizes_in(options_.sizes);
    if (all_sizes.back() < options_.sizes.end) all_sizes.push_back(options_.sizes.end);
    auto const start = clock::now();
    auto const gradients = with_models_ ? gradient_buckets(options_) : std::vector<workload>{};
    double const for_sizes = gradients.empty() ? seconds_ : seconds_ * 0.75;
    for (std::size_t i = 0; i < all_sizes.size(); ++i) {
      double const left = shop_.me().together.agree(for_sizes - seconds_since(start));
      // On a busy machine even the fewest repetitions take too long: the largest sizes are given up then.
      if (left < -0.5 * for_sizes) return;
      // The few large sizes take most of the time; what a small one does not need is theirs.
      double const each = std::max(left, 0.0) / static_cast<double>(all_sizes.size() - i);
      size(all_sizes[i], all_sizes[i] < (1u << 20) ? std::min(each, 1.5) : each);
    }
    for (auto const& work : gradients)
      if (shop_.me().together.agree(seconds_since(start)) < 1.2 * seconds_) model(work);
  }

 private:
  call what(algorithm how) const {
    return {options_.what, datatype::float32, reduction::sum, how, 0, std::chrono::seconds(options_.timeout_s)};
  }

  void show(std::string const& text) {
    auto& me = shop_.me();
    if (me.rank() == 0)
      me.emit(fmt::format("{}{} over {}, {} ranks, {}", progress_mark, to_string(options_.what), me.transport,
                          me.size(), text));
  }

  void size(std::size_t bytes, double seconds) {
    show(format_bytes(bytes));
    workload const work{"", {std::max<std::size_t>(1, bytes / sizeof(float))}};
    // What is not timed, half an iteration for each and the check, takes its part.
    double const each = 0.45 * seconds / static_cast<double>(candidates_.size());
    auto const rows = contest_between(work, each);
    double best = HUGE_VAL;
    for (auto const& r : rows) best = std::min(best, r.p50_us);
    for (auto const& r : rows)
      if (r.p50_us > never_pruned_us && r.p50_us > hopeless * best && r.algorithm != to_string(algorithm::automatic))
        std::erase(candidates_, algorithm_from(r.algorithm));
  }

  std::vector<row> contest_between(workload const& work, double each_s) {
    bool const in_place = has_in_place(options_.what);
    std::vector<measurement> runs;
    for (auto const how : candidates_) runs.emplace_back(shop_, job{what(how), work, in_place, 2, 0, each_s, 1});
    for (auto& r : runs) r.warm_up();
    leave_out_slow_ones(runs, each_s);
    // Many turns: when the host moves the cores apart, that meets all algorithms alike.
    constexpr int wanted = 9;
    turns taken(wanted, ever_near_);
    double limit = not_measured;
    for (double before = flag_ns(), after; !taken.enough(); before = after) {
      if (work.name.empty() && taken.size() % 3 == 0)
        limit = std::fmin(limit, shop_.limit(what(algorithm::automatic), work.counts));
      for (auto& r : runs) r.run(wanted);
      after = flag_ns();
      taken.add(std::fmax(before, after));
    }
    ever_near_ = taken.ever_near();
    std::vector<row> rows;
    for (auto& r : runs) {
      rows.push_back(r.finish(taken.counted()));
      rows.back().limit_us = limit;
      rows.back().flag_round_trip_ns = taken.flag_ns();
    }
    if (shop_.me().rank() == 0)
      for (auto const& r : rows) shop_.me().emit(to_line({&r, 1}));
    return rows;
  }

  /// Measured by rank 0 on the first two cores; the others sleep meanwhile, so as not to take part of one.
  double flag_ns() {
    auto& me = shop_.me();
    if (me.rank() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return me.together.agree(me.rank() == 0 ? flag_round_trip_ns(cores_) : not_measured);
  }

  /// Leaves out those that are far behind in the warm-up, for this size: they would take the time that the others need.
  /// In a hurry more of them, but the fastest few always stay. All ranks decide alike.
  static void leave_out_slow_ones(std::vector<measurement>& runs, double each_s) {
    std::vector<double> times;
    double sum = 0;
    for (auto const& r : runs) {
      times.push_back(r.iteration_s());
      sum += r.iteration_s();
    }
    std::sort(times.begin(), times.end());
    bool const in_a_hurry = 5 * sum > 2 * each_s * static_cast<double>(runs.size());
    double const bound = std::max({never_pruned_us * 1e-6, (in_a_hurry ? 1.5 : hopeless) * times.front(),
                                   times[std::min<std::size_t>(always_kept, times.size()) - 1]});
    std::vector<measurement> kept;
    for (auto& r : runs)
      if (r.iteration_s() <= bound || r.how() == algorithm::automatic) kept.push_back(std::move(r));
    runs = std::move(kept);
  }

  /// A whole gradient with the library's own choice.
  void model(workload const& work) {
    show(work.name);
    candidates_ = {algorithm::automatic};
    contest_between(work, seconds_ * 0.05);
  }

  compare_options const& options_;
  bool with_models_;
  double seconds_;
  std::vector<int> const& cores_;  ///< of the machine, before ranks were given theirs
  workshop shop_;
  std::vector<algorithm> candidates_;
  bool ever_near_ = false;  ///< the cores, in any turn so far
};

std::string percent(double ratio) { return std::isfinite(ratio) ? fmt::format("{:.0f} %", 100 * ratio) : "-"; }

/// "ring by 1.43x", or "level with ring".
std::string next_to(contest const& c) {
  for (auto const* r : c.by_time) {
    if (r == c.leader) continue;
    double const factor = r->p50_us / c.leader->p50_us;
    return factor < level ? fmt::format("level with {}", r->algorithm)
                          : fmt::format("{} by {:.2f}x", r->algorithm, factor);
  }
  return "-";
}

void print(panel const& p, double flag_ns) {
  fmt::print("\n{}, {} ranks   (round trip of a flag between two cores {})\n", p.transport, p.ranks,
             std::isfinite(flag_ns) ? fmt::format("{:.0f} ns", flag_ns) : "unknown");
  fmt::print("{:>10}  {:<20}{:>10}{:>15}  {:<30}{:>11}{:>10}\n", "size", "fastest", "time", "busbw", "ahead of",
             "automatic", "of limit");
  for (auto const& c : p.contests) {
    auto const* first = c.leader;
    if (first == nullptr) continue;
    auto const automatic = std::isfinite(c.regret()) ? fmt::format("{:+.0f} %", 100 * (c.regret() - 1)) : "-";
    fmt::print("{:>10}  {:<20}{:>10}{:>10.3g} GB/s  {:<30}{:>11}{:>10}{}\n", format_bytes(c.bytes), first->algorithm,
               format_us(first->p50_us), first->busbw_GBps, next_to(c), automatic, percent(c.limit_us / first->p50_us),
               first->good() ? "" : "  WRONG");
  }
  fmt::print("{:>10}  {}\n", "", describe(reigns_of(p)));
}

void print_models(std::vector<row> const& rows) {
  bool first = true;
  for (auto const& r : rows) {
    if (r.workload.empty()) continue;
    if (std::exchange(first, false)) fmt::print("\nWhole gradients (float, summed in place, library's own choice)\n");
    fmt::print("{:>12}, {} ranks  {:<34}{:>10} in {:>3} calls {:>10} {:>8.3g} GB/s busbw\n", r.transport, r.ranks,
               r.workload, format_bytes(r.bytes), r.buffers, format_us(r.p50_us), r.busbw_GBps);
  }
}

std::string command_of(compare_options const& o) {
  std::string text = "rondo compare";
  if (o.quick) text += " --quick";
  if (o.what != collective::all_reduce) text += fmt::format(" --collective {}", to_string(o.what));
  return text;
}

compare_options completed(compare_options o) {
  if (o.transports.empty()) o.transports = usual_transports();
  if (o.ranks.empty()) o.ranks = {2, 3, 4};
  if (o.sizes.end == 0) o.sizes.end = o.quick ? std::size_t{4} << 20 : std::size_t{64} << 20;
  if (o.minutes == 0) o.minutes = o.quick ? 0.8 : 3.6;
  if (o.models.empty())
    o.models = o.quick ? std::vector<std::string>{"resnet50"} : std::vector<std::string>{"gpt2", "resnet50"};
  return o;
}

}  // namespace

contests hold_contests(compare_options const& o, panel_printer const& print) {
  contests all;
  auto const start = clock::now();
  auto const cores = allowed_cores();
  auto worlds_left = static_cast<double>(o.ranks.size() * o.transports.size());
  progress_line progress;
  for (auto const& transport : o.transports)
    for (int const ranks : o.ranks) {
      bool const with_models = ranks == o.ranks.front();
      double const time_left = o.minutes * 60 - seconds_since(start);
      double const each_s = std::max(time_left / worlds_left--, 2.0);
      std::vector<row> found;
      auto const body = [&](member& me) { compare_body(o, with_models, each_s, cores, me).run(); };
      auto const sink = [&](std::string_view line) {
        if (line.front() == progress_mark) return progress.show(line.substr(1));
        for (auto& r : from_line(line)) found.push_back(std::move(r));
      };
      // What one set of ranks has met is said at once and counts at the end; the others are still compared.
      try {
        run_world({transport, ranks, o.pin, o.sizes.end + 4096, std::chrono::seconds(o.timeout_s)}, body, sink);
      } catch (world_error const& e) {
        progress.clear();
        fmt::print(stderr, "rondo: {}\n", e.what());
        all.all_ran = false;
      }
      progress.clear();
      std::vector<double> flags;
      for (auto const& r : found) flags.push_back(r.flag_round_trip_ns);
      all.flag_round_trips_ns.push_back(summarise(flags).p50);
      for (auto const& p : panels_of(found)) print(p, all.flag_round_trips_ns.back());
      std::fflush(stdout);
      all.rows.insert(all.rows.end(), found.begin(), found.end());
    }
  return all;
}

std::string who_chooses() {
  char const* const path = std::getenv("RONDO_POLICY");
  return path && *path ? fmt::format("the policy {} (RONDO_POLICY)", path) : "the built-in model";
}

std::string describe_regret(std::vector<row> const& rows, std::string const& who) {
  auto const panels = panels_of(rows);
  auto const all = regrets_of(panels);
  if (all.count == 0) return "No regret of the automatic choice: fewer than two algorithms were measured.";
  auto const& worst = *all.worst_contest;
  return fmt::format(
      "Regret of the choice by {}, over {} sizes x ranks x transports: {:.1f} % geometric mean, {:.0f} % at worst "
      "({}, {} ranks, {}: {} instead of {}).",
      who, all.count, 100 * (all.mean - 1), 100 * (all.worst - 1), all.worst_panel->transport, all.worst_panel->ranks,
      format_bytes(worst.bytes), worst.automatic->chosen, worst.best()->algorithm);
}

int compare(compare_options const& given) {
  auto const o = completed(given);
  if (launched_as_rank())
    throw usage_error("rondo compare starts its own ranks: run it without a launcher, or use rondo perf.");
  if (o.what == collective::barrier)
    throw usage_error("A barrier has no sizes to compare: use rondo perf --collective barrier.");
  for (int const ranks : o.ranks)
    for (auto const& transport : o.transports) algorithms_of(o.algorithms, o.what, ranks, transport);
  sizes_in(o.sizes);
  gradient_buckets(o);

  auto const start = clock::now();
  auto const m = this_machine();
  fmt::print("{} on {}\nautomatic: {}\n", to_string(o.what), describe(m), who_chooses());
  report_facts facts{describe(m),
                     local_time("%Y-%m-%d %H:%M %Z"),
                     fmt::format("{}.{}.{}", RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH),
                     command_of(o),
                     0,
                     static_cast<int>(m.allowed_cores.size()),
                     {}};
  auto const [rows, flags, all_ran] = hold_contests(o, print);
  facts.flag_round_trips_ns = flags;
  print_models(rows);
  facts.seconds = seconds_since(start);

  auto const verdict = judge(rows);
  fmt::print("\n{}\n", describe_regret(rows, who_chooses()));
  fmt::print("{} results, {} checked: {} elements out of bounds, {} with different bits across ranks. {:.0f} s.\n",
             verdict.rows, verdict.checked, verdict.wrong, verdict.unequal, facts.seconds);
  if (!o.json.empty()) write_json(o.json, rows);
  std::ofstream page(o.report);
  page << report_page(facts, rows);
  page.close();
  if (!page) throw usage_error(fmt::format("'{}' cannot be written: choose another file with --report.", o.report));
  fmt::print("The page {} shows it all.\n", o.report);
  return all_ran && verdict.good() ? 0 : 1;
}

}  // namespace rondo::bench
