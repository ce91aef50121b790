#include "perf.hpp"

#include "algorithms.hpp"
#include "console.hpp"
#include "limit.hpp"
#include "model.hpp"
#include "row.hpp"
#include "text.hpp"
#include "world.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fmt/format.h>

namespace rondo::bench {
namespace {

constexpr char progress_mark = '~';
constexpr std::size_t largest_probe = std::size_t{256} << 20;

/// What one rank does for `rondo perf`.
class perf_body {
 public:
  perf_body(perf_options const& options, member& me) : options_(options), shop_(me, options.memory) {}

  void run() {
    for (auto const what : options_.collectives)
      for (auto const how : algorithms_of(options_.algorithms, what, shop_.me().size(), shop_.me().transport))
        for (auto const type : options_.types)
          for (auto const op : reduces(what) ? options_.ops : std::vector{reduction::sum})
            series({what, type, op, how, options_.root, std::chrono::seconds(options_.timeout_s)});
  }

 private:
  void series(call const& what) {
    if (what.what == collective::barrier) return line(what, {"", {0}});
    if (options_.models.empty())
      for (auto const bytes : sizes_in(options_.sizes)) line(what, {"", {bytes / size_of(what.type)}});
    for (auto const& model : options_.models)
      for (auto const& work : workloads_of(model, what.type, options_.bucket)) line(what, work);
  }

  /// One line of the table: out of place and in place, as far as the collective has them.
  void line(call const& what, workload const& work) {
    auto& me = shop_.me();
    if (me.rank() == 0)
      me.emit(fmt::format("{}{} over {}, {} ranks, {}, {}", progress_mark, to_string(what.what), me.transport,
                          me.size(), to_string(what.how),
                          work.name.empty() ? format_bytes(work.counts.front() * size_of(what.type)) : work.name));
    double const limit = options_.limit ? shop_.limit(what, work.counts) : not_measured;
    std::vector<row> rows;
    for (bool const in_place : {false, true}) {
      if (in_place ? !has_in_place(what.what) : !has_out_of_place(what.what)) continue;
      measurement series(
          shop_, {what, work, in_place, options_.warm_up, options_.iterations, options_.budget_s, options_.checks});
      series.warm_up();
      series.run();
      auto r = series.finish();
      r.limit_us = limit;
      rows.push_back(r);
    }
    if (me.rank() == 0) me.emit(to_line(rows));
  }

  perf_options const& options_;
  workshop shop_;
};

/// Prints what rank 0 reports, as nccl-tests does.
class perf_table {
 public:
  explicit perf_table(double flag_ns) : flag_ns_(flag_ns) {}

  void take(std::string_view line) {
    if (line.front() == progress_mark) return progress_.show(line.substr(1));
    progress_.clear();
    auto rows = from_line(line);
    for (auto& r : rows) r.flag_round_trip_ns = flag_ns_;
    if (rows.empty()) return;
    header(rows.front());
    print(rows);
    rows_.insert(rows_.end(), rows.begin(), rows.end());
  }

  std::vector<row> const& rows() const { return rows_; }

  /// The summary below the tables; returns whether everything was right.
  bool summarise() const {
    std::size_t wrong = 0;
    bool hashes = true, checked = true;
    std::vector<double> bus;
    for (auto const& r : rows_) {
      wrong += r.wrong;
      hashes = hashes && r.hashes_equal;
      checked = checked && r.checked;
      if (r.busbw_GBps > 0) bus.push_back(r.busbw_GBps);
    }
    double sum = 0;
    for (double const b : bus) sum += b;
    fmt::print("\n# Out of bounds values : {} {}\n", wrong,
               !checked     ? "(not all were checked)"
               : wrong == 0 ? "OK"
                            : "FAILED");
    fmt::print("# Hashes across ranks  : {}\n", hashes ? "equal" : "DIFFERENT");
    if (!bus.empty()) fmt::print("# Avg bus bandwidth    : {:.3f} GB/s\n", sum / static_cast<double>(bus.size()));
    return wrong == 0 && hashes;
  }

 private:
  void header(row const& r) {
    auto const group = fmt::format("{} · {} · {} · {} ranks", r.collective, r.algorithm, r.transport, r.ranks);
    if (group == group_) return;
    group_ = group;
    fmt::print("\n# {} · round trip of a flag between two cores {}\n", group,
               std::isfinite(flag_ns_) ? fmt::format("{:.0f} ns", flag_ns_) : "unknown");
    fmt::print(
        "# time: median over the iterations of the slowest rank. limit: what this machine needs without a library.\n");
    fmt::print("#{:>12}{:>13}{:>9}{:>7}{:>6}  {:>31}  {:>31}\n", "", "", "", "", "", "out-of-place", "in-place");
    fmt::print("#{:>12}{:>13}{:>9}{:>7}{:>6}  {:>9}{:>8}{:>8}{:>7} {:>9}{:>8}{:>8}{:>7}{:>10}{:>10}{:>10}{:>7}\n",
               "size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw",
               "#wrong", "p99 out", "p99 in", "limit", "share");
    fmt::print("#{:>12}{:>13}{:>9}{:>7}{:>6}  {:>9}{:>8}{:>8}{:>7} {:>9}{:>8}{:>8}{:>7}{:>10}{:>10}{:>10}{:>7}\n",
               "(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)",
               "(us)", "(us)", "(%)");
  }

  static std::string number(double value) {
    if (!std::isfinite(value)) return "-";
    return fmt::format("{:.{}f}", value, value < 100 ? 2 : value < 1e5 ? 1 : 0);
  }

  static std::string half(row const* r) {
    if (r == nullptr) return fmt::format("{:>9}{:>8}{:>8}{:>7}", "-", "-", "-", "-");
    auto const wrong = !r->checked ? "n/a" : fmt::format("{}{}", r->wrong, r->hashes_equal ? "" : "!");
    return fmt::format("{:>9}{:>8}{:>8}{:>7}", number(r->p50_us), number(r->algbw_GBps), number(r->busbw_GBps), wrong);
  }

  static void print(std::vector<row> const& rows) {
    row const *out_of_place = nullptr, *in_place = nullptr;
    double fastest = HUGE_VAL;
    for (auto const& r : rows) {
      (r.in_place ? in_place : out_of_place) = &r;
      fastest = std::min(fastest, r.p50_us);
    }
    auto const& r = rows.front();
    auto const p99 = [](row const* half) { return half != nullptr ? number(half->p99_us) : std::string("-"); };
    fmt::print(" {:>12}{:>13}{:>9}{:>7}{:>6}  {} {}{:>10}{:>10}{:>10}{:>7}", r.bytes, r.count, r.type, r.op, r.root,
               half(out_of_place), half(in_place), p99(out_of_place), p99(in_place), number(r.limit_us),
               std::isfinite(r.limit_us) ? fmt::format("{:.0f}", 100 * r.limit_us / fastest) : "-");
    if (!r.workload.empty()) fmt::print("  {}: {} calls", r.workload, r.buffers);
    fmt::print("\n");
    std::fflush(stdout);
  }

  double flag_ns_;
  std::string group_;
  std::vector<row> rows_;
  progress_line progress_;
};

/// The largest size for which a limit has to be measured.
std::size_t probe_bytes(perf_options const& options) {
  if (!options.limit) return 0;
  std::size_t most = 64;
  if (options.models.empty()) most = options.sizes.end;
  for (auto const& model : options.models)
    for (auto const& work : workloads_of(model, datatype::float64, options.bucket))
      for (auto const count : work.counts) most = std::max(most, count * size_of(datatype::float64));
  return std::min(most + 4096, largest_probe) / 4096 * 4096;
}

}  // namespace

std::vector<workload> workloads_of(std::string_view model, datatype type, std::size_t bucket_bytes) {
  auto const tensors = gradients(model);
  return {{fmt::format("{} tensor by tensor", model), buckets(tensors, size_of(type), 0)},
          {fmt::format("{} in buckets of {}", model, format_bytes(bucket_bytes)),
           buckets(tensors, size_of(type), bucket_bytes)}};
}

int perf(perf_options const& options) {
  sizes_in(options.sizes);
  double const flag_ns = flag_round_trip_ns();
  perf_table table(flag_ns);
  auto const sink = [&](std::string_view line) { table.take(line); };
  auto const body = [&](member& me) { perf_body(options, me).run(); };
  auto const spec = [&](std::string const& transport, int ranks) {
    return world_spec{transport, ranks, options.pin, probe_bytes(options), std::chrono::seconds(options.timeout_s)};
  };
  if (launched_as_rank()) {
    if (!options.ranks.empty())
      throw usage_error(
          "A launcher has started the ranks: leave --ranks out, or start rondo perf without the launcher.");
    for (auto const& transport : options.transports) join_world(spec(transport, 0), body, sink);
  } else {
    for (int const ranks : options.ranks.empty() ? std::vector{2} : options.ranks) {
      for (auto const& transport : options.transports)
        for (auto const what : options.collectives) algorithms_of(options.algorithms, what, ranks, transport);
      for (auto const& transport : options.transports) run_world(spec(transport, ranks), body, sink);
    }
  }
  if (table.rows().empty()) return 0;
  bool const right = table.summarise();
  if (!options.json.empty()) write_json(options.json, table.rows());
  if (!options.csv.empty()) write_csv(options.csv, table.rows());
  return right ? 0 : 1;
}

}  // namespace rondo::bench
