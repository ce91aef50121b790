#include "report.hpp"

#include "analysis.hpp"
#include "plot.hpp"
#include "statistics.hpp"
#include "text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <utility>

namespace rondo::bench {
namespace {

constexpr std::string_view style = R"(
:root{--paper:#fff;--ink:#1a1a1a;--soft:#666;--line:#e4e4e4;--tint:#f6f7f9}
@media screen and (prefers-color-scheme:dark){
:root{--paper:#15171a;--ink:#e8e8e8;--soft:#a0a0a0;--line:#33363b;--tint:#1e2126}}
:root{color-scheme:light dark}
body{background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;margin:0}
main{max-width:1380px;margin:0 auto;padding:2.2rem 1.4rem 4rem}
p,ul{max-width:76ch}h1{font-size:1.9rem;line-height:1.2;margin:0 0 .2em}h2{margin:2.4em 0 .4em;font-size:1.3rem}
h3{margin:1.6em 0 .4em;font-size:1.05rem}.soft{color:var(--soft)}.small{font-size:.87rem}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(330px,1fr));gap:1rem 1.2rem}
.maps{display:flex;flex-wrap:wrap;gap:1.4rem 2.2rem}
svg{width:100%;height:auto;display:block;font-family:inherit}.maps svg{width:auto;flex:1 1 380px}
.legend{max-width:none;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;font-size:.87rem}
.legend span{display:inline-flex;align-items:center;gap:.4rem}
.legend svg{width:34px;flex:none}
table{border-collapse:collapse;font-size:.87rem;font-variant-numeric:tabular-nums}
td,th{padding:.22rem .7rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th{font-weight:600;background:var(--tint)}.t{text-align:left}.w{white-space:normal}.scroll{overflow-x:auto}
.box{background:var(--tint);border-radius:8px;padding:.3rem 1.2rem;margin:1.2rem 0}
.bad{color:#b3261e;font-weight:700}summary{cursor:pointer}code{font-size:.92em}
@media print{main{padding:0;max-width:none}h2{break-after:avoid}svg,tr{break-inside:avoid}body{font-size:10.5pt}
.grid{grid-template-columns:repeat(3,1fr);gap:.5rem}details:not([open]){display:none}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
)";

std::string title_of(panel const& p) { return fmt::format("{}, {} ranks", p.transport, p.ranks); }

std::vector<std::string> transports_in(std::vector<panel> const& panels) {
  std::vector<std::string> names;
  for (auto const& p : panels)
    if (std::find(names.begin(), names.end(), p.transport) == names.end()) names.push_back(p.transport);
  return names;
}

std::string_view meaning(std::string_view transport) {
  if (transport == "in_process") return "ranks are threads of one process";
  if (transport == "shm") return "ranks are processes that share memory";
  if (transport == "tcp") return "ranks are processes connected by TCP, here over loopback";
  if (transport == "multi") return "ranks are processes, each pair connected by the best way that it has";
  if (transport == "ucx") return "ranks are processes connected by UCX";
  if (transport == "verbs") return "ranks are processes connected by InfiniBand or RoCE";
  return "another interconnect";
}

std::string_view explanation(std::string_view algorithm) {
  static constexpr std::array<std::array<std::string_view, 2>, 12> known{{
      {"ring", "every rank passes pieces to its neighbour and adds what arrives; the fewest bytes, but a round for "
               "each rank, twice"},
      {"bidirectional_ring", "two rings in opposite directions, each for half of the buffer"},
      {"tree", "sums flow up a binary tree and the result flows down, in segments"},
      {"double_tree", "two trees, each for half of the buffer, so that the leaves of one work in the other"},
      {"recursive_doubling",
       "whole buffers go to partners at doubling distances; the fewest rounds, but all bytes in each"},
      {"recursive_halving",
       "halves, quarters and so on go to partners and come back as results; few rounds and few bytes"},
      {"ordered_halving", "as recursive_halving, with one order of summation for all elements"},
      {"mixed_radix", "as recursive_halving, with groups of more than two"},
      {"binomial", "one rank collects the sum along a tree of few rounds and hands it out the same way"},
      {"hierarchical", "sums inside groups first, then between groups"},
      {"direct", "every rank sends to every other without detours"},
      {"automatic", "what rondo chooses from size, ranks and operation when it is left the choice"},
  }};
  for (auto const& [name, text] : known)
    if (name == algorithm) return text;
  return {};
}

class page {
 public:
  page(report_facts const& facts, std::span<row const> rows)
      : facts_(facts), rows_(rows), panels_(panels_of(rows)), verdict_(judge(rows)) {}

  std::string write() {
    collective_ = rows_.empty() ? "all_reduce" : rows_.front().collective;
    out_ = fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
        "content=\"width=device-width,initial-scale=1\"><title>rondo: {0} on this machine</title>\n<style>{1}{2}"
        "</style></head>\n<body><main>\n<h1>{0}: which algorithm, over which interconnect?</h1>\n"
        "<p class=\"soft\">{3}<br>{4} · rondo {5} · <code>{6}</code> · {7:.0f} s</p>\n",
        escaped(collective_), style, plot_style(), escaped(facts_.machine), escaped(facts_.date),
        escaped(facts_.version), escaped(facts_.command), facts_.seconds);
    introduction();
    conclusions();
    maps();
    plots();
    gradients();
    glossary();
    method();
    table();
    return std::move(out_) + "</main></body></html>\n";
  }

 private:
  void add(std::string_view html) { out_ += html; }

  void introduction() {
    add("<h2>What this is</h2>\n");
    if (collective_ == "all_reduce")
      add("<p>When several processes train one model, each computes gradients from its own data; before every step the "
          "gradients must "
          "be summed, and everybody needs the sum. That is an <b>all-reduce</b>. There are several ways to do it, and "
          "which one "
          "is fastest depends on the size of the buffer, on how many processes (<i>ranks</i>) take part and on what "
          "connects them. This page "
          "shows measurements of all ways that rondo knows, on the machine above.</p>\n");
    else
      add(fmt::format(
          "<p>There are several algorithms for <b>{}</b>, and which one is fastest depends on the size of the buffer, "
          "on "
          "how many processes (<i>ranks</i>) take part and on what connects them. This page shows measurements of all "
          "that rondo knows, on the machine above.</p>\n",
          escaped(collective_)));
    std::string transports;
    for (auto const& name : transports_in(panels_))
      transports += fmt::format("<li><b>{}</b>: {}</li>\n", escaped(name), meaning(name));
    add("<ul>\n" + transports + "</ul>\n");
    add("<p><b>Time</b> is that of the slowest rank, the median over many repetitions: lower is better. <b>busbw</b> "
        "(bus bandwidth) is bytes "
        "divided by time, times a factor that makes collectives and numbers of ranks comparable: ");
    add(collective_ == "all_reduce"
            ? "for an all-reduce over p ranks 2(p−1)/p, because every byte must leave and enter a rank that often. "
            : "the share of the bytes that must cross a link. ");
    add("It is what each rank's connection had to carry, so it can be compared with the speed of that connection: "
        "higher is better, and a "
        "flat line at large sizes means that the connection is full. <b>limit</b> is what this machine needs for the "
        "same job with no "
        "library at all, measured in the same run.</p>\n");
  }

  void conclusions() {
    add("<h2>In short</h2>\n<div class=\"box\"><ul>\n");
    auto const item = [&](std::string const& html) { add("<li>" + html + "</li>\n"); };
    if (verdict_.good())
      item(fmt::format("All {} results are right: every element was compared with the exact result, and all ranks held "
                       "the same bits.",
                       verdict_.checked));
    else
      item(fmt::format("<span class=\"bad\">{} elements were wrong, and {} series left different bits on different "
                       "ranks. Do not use "
                       "these numbers; please report them.</span>",
                       verdict_.wrong, verdict_.unequal));
    for (auto const& name : transports_in(panels_))
      for (auto const& p : panels_) {
        if (p.transport != name) continue;
        item(fmt::format("{} ranks over <b>{}</b>: {}.", p.ranks, escaped(name), escaped(describe(reigns_of(p)))));
        break;
      }
    interconnects(item);
    regrets(item);
    oversubscribed(item);
    add("</ul></div>\n");
  }

  /// How much the choice of the interconnect matters.
  template <class Item>
  void interconnects(Item const& item) {
    panel const *first = nullptr, *last = nullptr;
    double low = HUGE_VAL, high = 0;
    auto const at_largest = [](panel const& p) {
      return p.contests.empty() || p.contests.back().best() == nullptr ? not_measured
                                                                       : p.contests.back().best()->p50_us;
    };
    for (auto const& p : panels_) {
      if (p.ranks != panels_.front().ranks || std::isnan(at_largest(p))) continue;
      if (at_largest(p) < low) low = at_largest(p), first = &p;
      if (at_largest(p) > high) high = at_largest(p), last = &p;
    }
    if (first != nullptr && first != last)
      item(fmt::format(
          "The interconnect matters more than the algorithm: {} take {} over {} and {} over {}, {:.1f} times as long.",
          format_bytes(first->contests.back().bytes), format_us(low), escaped(first->transport), format_us(high),
          escaped(last->transport), high / low));
  }

  template <class Item>
  void regrets(Item const& item) {
    auto const all = regrets_of(panels_);
    if (all.count == 0) return;
    item(fmt::format("You need not choose: rondo's own choice is on average {:.0f} % slower than the best algorithm of "
                     "each size, at "
                     "worst {:.0f} % ({}, {}).",
                     100 * (all.mean - 1), 100 * (all.worst - 1), format_bytes(all.worst_contest->bytes),
                     escaped(title_of(*all.worst_panel))));
  }

  template <class Item>
  void oversubscribed(Item const& item) {
    for (auto const& p : panels_)
      if (p.ranks > facts_.cores) {
        item(fmt::format(
            "Runs with more ranks than the {} cores show how rondo behaves when ranks must take turns, not what a "
            "machine with more cores would reach.",
            facts_.cores));
        return;
      }
  }

  void maps() {
    add("<h2>The fastest algorithm</h2>\n<p class=\"small soft\">By size (down) and number of ranks (across). The "
        "factor is the lead over the "
        "second; about level means that they differ by less than 5 %.</p>\n<div class=\"maps\">\n");
    for (auto const& name : transports_in(panels_)) {
      std::vector<std::string> columns, rows;
      std::set<std::size_t> sizes;
      for (auto const& p : panels_)
        if (p.transport == name) {
          columns.push_back(fmt::format("{} ranks", p.ranks));
          for (auto const& c : p.contests) sizes.insert(c.bytes);
        }
      std::vector<std::size_t> all;
      for (auto const bytes : sizes)
        if (all.empty() || format_bytes(all.back()) != format_bytes(bytes)) all.push_back(bytes);
      std::vector<std::vector<map_cell>> cells;
      for (auto const bytes : all) {
        rows.push_back(format_bytes(bytes));
        auto& line = cells.emplace_back();
        for (auto const& p : panels_)
          if (p.transport == name) line.push_back(cell_of(p, bytes));
      }
      add(winner_map(name, columns, rows, cells));
    }
    add("</div>\n<h3>Where the lead changes</h3>\n<div class=\"scroll\"><table><tr><th "
        "class=\"t\">interconnect</th><th>ranks</th>"
        "<th class=\"t\">fastest</th></tr>\n");
    for (auto const& p : panels_)
      add(fmt::format("<tr><td class=\"t\">{}</td><td>{}</td><td class=\"t\">{}</td></tr>\n", escaped(p.transport),
                      p.ranks, escaped(describe(reigns_of(p)))));
    add("</table></div>\n");
  }

  static map_cell cell_of(panel const& p, std::size_t bytes) {
    for (auto const& c : p.contests) {
      if (c.bytes != bytes || c.leader == nullptr) continue;
      std::string hint;
      for (auto const* r : c.by_time) hint += fmt::format("{}: {}\n", r->algorithm, format_us(r->p50_us));
      auto const note = c.by_time.size() < 2 ? ""
                        : c.lead() < level   ? "about level"
                                             : fmt::format("{:.2f} x", c.lead());
      return {c.leader->algorithm, note, hint};
    }
    return {};
  }

  void plots() {
    auto names = algorithms_in(rows_);
    names.emplace_back("limit");
    double low = HUGE_VAL, high = 0;
    for (auto const& p : panels_)
      for (auto const& c : p.contests) {
        if (std::isfinite(c.limit_us)) low = std::min(low, c.limit_us);
        for (auto const* r : c.by_time) low = std::min(low, r->p50_us), high = std::max(high, r->p50_us);
        if (c.automatic != nullptr)
          low = std::min(low, c.automatic->p50_us), high = std::max(high, c.automatic->p50_us);
      }
    if (!(high > 0)) return;
    low = std::pow(10, std::floor(std::log10(std::max(low, 1e-3))));
    high = std::pow(10, std::ceil(std::log10(high)));

    add("<h2>Time over size</h2>\n<p class=\"small soft\">Both axes are logarithmic; all plots share the axis of time. "
        "A flat line "
        "at the left is the cost of starting at all, a rising one at the right that of moving and adding bytes.</p>\n");
    add(legend(names));
    add("<div class=\"grid\">\n");
    for (auto const& p : panels_)
      add(line_plot({title_of(p), "us", true, low, high}, lines_of(p, [](double us, row const&) { return us; })));
    add("</div>\n<h2>Bandwidth over size</h2>\n<p class=\"small soft\">busbw in GB/s. The plots of one interconnect "
        "share an axis.</p>\n");
    add(legend(names));
    add("<div class=\"grid\">\n");
    for (auto const& name : transports_in(panels_)) {
      double top = 0;
      for (auto const& p : panels_)
        if (p.transport == name)
          for (auto const& c : p.contests)
            if (c.best() != nullptr) {
              top = std::max(top, c.best()->busbw_GBps);
              if (c.limit_us > 0) top = std::max(top, bandwidth(c.limit_us, *c.best()));
            }
      for (auto const& p : panels_)
        if (p.transport == name) add(line_plot({title_of(p), "GB/s", false, 0, top * 1.05}, lines_of(p, bandwidth)));
    }
    add("</div>\n");
  }

  /// busbw if the calls of the row took that long.
  static double bandwidth(double us, row const& r) { return r.busbw_GBps * r.p50_us / us; }

  template <class Value>
  std::vector<plot_line> lines_of(panel const& p, Value&& value) const {
    std::vector<plot_line> lines{{"limit", {}}};
    for (auto const& name : algorithms_in(rows_)) lines.push_back({name, {}});
    auto const add_point = [&](std::string const& name, std::size_t bytes, double v) {
      for (auto& line : lines)
        if (line.name == name) line.points.push_back({bytes, v});
    };
    for (auto const& c : p.contests) {
      if (c.best() == nullptr) continue;
      if (std::isfinite(c.limit_us)) add_point("limit", c.bytes, value(c.limit_us, *c.best()));
      for (auto const* r : c.by_time) add_point(r->algorithm, c.bytes, value(r->p50_us, *r));
      if (c.automatic != nullptr) add_point("automatic", c.bytes, value(c.automatic->p50_us, *c.automatic));
    }
    return lines;
  }

  void gradients() {
    bool any = false;
    for (auto const& r : rows_) {
      if (r.workload.empty()) continue;
      if (!std::exchange(any, true))
        add("<h2>Whole gradients of real models</h2>\n<p class=\"small soft\">All gradient tensors of the model in the "
            "order of its "
            "backward pass, put into buckets as trainers do, each bucket reduced in turn: what one training step would "
            "wait for if nothing "
            "overlapped.</p>\n<div class=\"scroll\"><table><tr><th class=\"t\">gradient</th><th "
            "class=\"t\">interconnect</th><th>ranks</th>"
            "<th>bytes</th><th>calls</th><th>time</th><th>busbw</th></tr>\n");
      add(fmt::format("<tr><td class=\"t\">{}</td><td "
                      "class=\"t\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.2f} GB/s</td></tr>\n",
                      escaped(r.workload), escaped(r.transport), r.ranks, format_bytes(r.bytes), r.buffers,
                      format_us(r.p50_us), r.busbw_GBps));
    }
    if (any) add("</table></div>\n");
  }

  void glossary() {
    add("<h2>The algorithms in a sentence each</h2>\n<ul class=\"small\">\n");
    for (auto const& name : algorithms_in(rows_))
      if (auto const text = explanation(name); !text.empty())
        add(fmt::format("<li><b>{}</b>: {}</li>\n", escaped(name), text));
    add("</ul>\n");
  }

  void method() {
    double low = HUGE_VAL, high = 0;
    for (double const ns : facts_.flag_round_trips_ns)
      if (std::isfinite(ns)) low = std::min(low, ns), high = std::max(high, ns);
    add("<h2>How it was measured</h2>\n<ul>\n<li>Before every call each rank rewrites its whole input, and after it "
        "each rank reads its whole "
        "output, outside the timer: buffers that nobody touches make some methods look many times faster than they "
        "are.</li>\n"
        "<li>All ranks start each call together; its time is that of the slowest. Algorithms take turns at each size, "
        "so that a "
        "disturbance hits all of them, and begin each turn with a few calls that do not count. An algorithm that was "
        "more than 4 times slower than the best at large sizes is "
        "left out at the next.</li>\n"
        "<li>The limit: for shared memory, every rank computes straight from and into buffers that all can address, "
        "the fastest of pulling, "
        "pushing, and pushing past the cache; for TCP, raw loopback sockets that carry the bytes that must cross each "
        "link, without adding them.</li>\n");
    if (high > 0)
      add(fmt::format("<li>A flag needs {:.0f} to {:.0f} ns from one core to another and back (median of each "
                      "block, whose turns count only near, where there are such). Some 100 ns is usual for "
                      "cores that share a cache; 300 ns and more means that a virtual machine's cores have been moved "
                      "apart, and everything "
                      "over shared memory is slower than this machine can do.</li>\n",
                      low, high));
    add("</ul>\n");
  }

  void table() {
    add("<details><summary>All numbers</summary>\n<div class=\"scroll\"><table><tr><th "
        "class=\"t\">interconnect</th><th>ranks</th><th class=\"t\">"
        "algorithm</th><th class=\"t\">size</th><th>min</th><th>median</th><th>99 "
        "%</th><th>algbw</th><th>busbw</th><th>of limit</th><th>repetitions</th>"
        "<th>wrong</th></tr>\n");
    for (auto const& r : rows_)
      add(fmt::format("<tr><td class=\"t\">{}</td><td>{}</td><td class=\"t\">{}</td><td "
                      "class=\"t\">{}</td><td>{}</td><td>{}</td><td>{}</td>"
                      "<td>{:.3f}</td><td>{:.3f}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                      escaped(r.transport), r.ranks, escaped(r.algorithm),
                      r.workload.empty() ? format_bytes(r.bytes) : escaped(r.workload), format_us(r.min_us),
                      format_us(r.p50_us), format_us(r.p99_us), r.algbw_GBps, r.busbw_GBps,
                      std::isfinite(r.share()) ? fmt::format("{:.0f} %", 100 * r.share()) : "-", r.iterations,
                      r.good() ? "0"
                               : fmt::format("<span class=\"bad\">{}</span>",
                                             r.wrong > 0 ? std::to_string(r.wrong) : "bits differ")));
    add("</table></div></details>\n");
  }

  report_facts const& facts_;
  std::span<row const> rows_;
  std::vector<panel> panels_;
  verdict_of_rows verdict_;
  std::string collective_, out_;
};

}  // namespace

std::string report_page(report_facts const& facts, std::span<row const> rows) { return page(facts, rows).write(); }

}  // namespace rondo::bench
