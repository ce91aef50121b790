#include "schedule_command.hpp"

#include "algorithms.hpp"
#include "collective.hpp"
#include "schedule_by_name.hpp"
#include "text.hpp"
#include "timeline.hpp"
#include <rondo/schedule/svg.hpp>
#include <rondo/schedule/verify.hpp>

#include <fmt/format.h>
#include <fstream>

namespace rondo::bench {
namespace {

verdict verified(collective what, schedule_ref const& s, int root) {
  using enum collective;
  switch (what) {
    case all_reduce: return verify_all_reduce(s);
    case reduce_scatter: return verify_reduce_scatter(s);
    case all_gather: return verify_all_gather(s);
    case broadcast: return verify_broadcast(s, root);
    case reduce: return verify_reduce(s, root);
    case all_to_all: return verify_all_to_all(s);
    case gather: return verify_gather(s, root);
    case scatter: return verify_scatter(s, root);
    default: return verify_barrier(s);
  }
}

void draw(schedule_ref const& s, std::string const& title, std::string const& path) {
  std::ofstream file(path);
  file << svg(s, {.title = title});
  file.close();
  if (!file) throw usage_error(fmt::format("'{}' cannot be written: choose another file with --svg.", path));
  fmt::print("\nDrawn into {}.\n", path);
}

/// Prints what the verifier proves; returns whether the schedule is correct.
bool prove(collective what, schedule_ref const& s, int root) {
  verdict v = verified(what, s, root);
  if (v)
    if (verdict const overlap = verify_overlap(s); !overlap) v = overlap;
  fmt::print("\nVerdict: {}.\n", v.describe());
  if (!v) return false;
  auto const fact = [](bool holds, char const* what_holds) {
    fmt::print("  {} {}\n", holds ? "yes" : "no ", what_holds);
  };
  if (!reduces(what)) return true;
  fact(v.same_bits, "all ranks get the same bits");
  fact(v.uniform_tree, "no element's bits depend on its place in the buffer");
  fact(v.canonical_tree, "the sum is the balanced tree over the order of ranks (fit for `ordered`)");
  fact(v.keeps_rank_order, "operands keep the order of ranks (fit for operations that do not commute)");
  return true;
}

}  // namespace

int show_schedule(schedule_options const& o) {
  auto const what = parse_collective(o.collective);
  auto const how = algorithms_of({o.algorithm}, what, o.ranks).front();
  if (what == collective::send_receive || how == algorithm::automatic)
    throw usage_error(
        "Only an algorithm has a schedule: name one, such as ring, and a collective other than send_receive.");
  if (o.root >= o.ranks)
    throw usage_error(fmt::format("There is no rank {} among {}: give a smaller -r.", o.root, o.ranks));
  bool correct = true;
  with_schedule(how, what, o.ranks, o.root, [&](schedule_ref const& s) {
    auto const title = fmt::format("{} by {}, {} ranks", to_string(what), to_string(how), o.ranks);
    fmt::print("{}: {} rounds, the buffer in {} chunks, segments follow each other at a distance of {} rounds\n\n{}",
               title, s.rounds(), s.chunks(), s.period(), timeline(s));
    if (!o.svg.empty()) draw(s, title, o.svg);
    if (o.verify) correct = prove(what, s, o.root);
  });
  return correct ? 0 : 1;
}

}  // namespace rondo::bench
