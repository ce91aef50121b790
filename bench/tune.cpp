#include "tune.hpp"

#include "choices.hpp"
#include "compare.hpp"
#include "machine.hpp"
#include "text.hpp"
#include "world.hpp"
#include <rondo/policy.hpp>
#include <rondo/version.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <ratio>

namespace rondo::bench {
namespace {

constexpr int passes = 3;  // over everything, far enough apart in time to meet different disturbances

compare_options contests_for(tune_options const& o, collective what, double minutes) {
  compare_options c;
  c.what = what;
  c.transports = o.transports.empty() ? usual_transports() : o.transports;
  c.ranks = o.ranks;
  c.sizes = o.sizes;
  c.models = {"none"};
  c.minutes = minutes;
  c.pin = o.pin;
  c.timeout_s = o.timeout_s;
  return c;
}

std::string command_of(tune_options const& o) {
  std::string text = fmt::format("rondo tune --minutes {} --end {}", o.minutes, o.sizes.end);
  for (auto const& t : o.transports) text += " --transport " + t;
  for (int const ranks : o.ranks) text += fmt::format(" --ranks {}", ranks);
  for (auto const what : o.collectives) text += fmt::format(" --collective {}", to_string(what));
  return text;
}

/// "100", or "100 to 420": the machine moved its cores while it was measured.
std::string flags_in_words(std::vector<double> const& ns) {
  auto const [low, high] = std::minmax_element(ns.begin(), ns.end());
  if (ns.empty() || !std::isfinite(*low) || !std::isfinite(*high)) return "unknown";
  return *high < 1.5 * *low ? fmt::format("{:.0f} ns", *low) : fmt::format("{:.0f} to {:.0f} ns", *low, *high);
}

void write(tune_options const& o, std::vector<policy::line> const& lines, std::vector<double> const& flags) {
  std::ofstream file(o.file);
  file << fmt::format(
      "# Choices of algorithms for rondo: RONDO_POLICY names this file, the same on all ranks.\n"
      "# machine: {}\n# date: {}, rondo {}.{}.{}\n# command: {}\n# round trip of a flag between two cores: {}\n"
      "# collective transport ranks bytes up_to algorithm microseconds runner_up microseconds\n",
      describe(this_machine()), local_time("%Y-%m-%d"), RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH,
      command_of(o), flags_in_words(flags));
  for (auto const& l : lines) file << to_string(l) << '\n';
  file.close();
  if (!file) throw usage_error(fmt::format("'{}' cannot be written: choose another file with -o.", o.file));
}

}  // namespace

int tune(tune_options const& given) {
  auto o = given;
  if (o.collectives.empty())
    o.collectives = {collective::all_reduce, collective::reduce_scatter, collective::all_gather, collective::broadcast,
                     collective::reduce};
  if (launched_as_rank()) throw usage_error("rondo tune starts its own ranks: run it without a launcher.");
  for (auto const what : o.collectives)
    if (what > collective::reduce)
      throw usage_error(
          fmt::format("There is one algorithm only for {}: leave it out of --collective.", to_string(what)));
  if (std::find(o.ranks.begin(), o.ranks.end(), 1) != o.ranks.end())
    throw usage_error("One rank has nothing to choose: give --ranks from 2 on.");
  sizes_in(o.sizes);

  auto const m = this_machine();
  auto const cores = static_cast<int>(m.allowed_cores.size());
  fmt::print("{} minutes on {}\n", o.minutes, describe(m));
  contests all;
  auto const start = std::chrono::steady_clock::now();
  auto left = passes * static_cast<double>(o.collectives.size());
  for (int pass = 1; pass <= passes; ++pass)
    for (auto const what : o.collectives) {
      std::chrono::duration<double, std::ratio<60>> const passed = std::chrono::steady_clock::now() - start;
      auto const minutes = std::max(0.01, (o.minutes - passed.count()) / left--);
      auto const found = hold_contests(contests_for(o, what, minutes), [&](panel const& p, double) {
        fmt::print("{}/{}: {} over {}, {} ranks: {}\n", pass, passes, to_string(what), p.transport, p.ranks,
                   describe(reigns_of(p)));
      });
      all.rows.insert(all.rows.end(), found.rows.begin(), found.rows.end());
      all.flag_round_trips_ns.insert(all.flag_round_trips_ns.end(), found.flag_round_trips_ns.begin(),
                                     found.flag_round_trips_ns.end());
      all.all_ran = all.all_ran && found.all_ran;
    }
  if (!all.all_ran || !judge(all.rows).good()) {
    fmt::print(stderr, "rondo: no policy was written, because ranks failed or results were wrong: see 'rondo "
                       "compare'.\n");
    return 1;
  }
  auto const rows = least_disturbed(all.rows);
  auto const lines = lines_of(rows, cores);
  write(o, lines, all.flag_round_trips_ns);

  auto const changes = changes_in(lines, rows, cores);
  fmt::print("\n{} lines in {}; other than the built-in choice:\n", lines.size(), o.file);
  for (auto const& text : changes) fmt::print("  {}\n", text);
  if (changes.empty()) fmt::print("  nothing: you do not need the file.\n");
  fmt::print("Use it by RONDO_POLICY={} or communicator_options::policy, on all ranks; 'RONDO_POLICY={} rondo compare' "
             "shows what it is worth.\n",
             o.file, o.file);
  return 0;
}

}  // namespace rondo::bench
