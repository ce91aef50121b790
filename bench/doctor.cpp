#include "doctor.hpp"

#include "comm.hpp"
#include "compare.hpp"
#include "connect.hpp"
#include "findings.hpp"
#include "limit.hpp"
#include "machine.hpp"
#include "text.hpp"
#include "turns.hpp"
#include <rondo/explain.hpp>
#include <rondo/policy.hpp>
#include <rondo/select.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <memory>
#include <string_view>
#include <unistd.h>

namespace rondo::bench {
namespace {

void look_at_cores(findings& found, machine const& m) {
  found.section("Cores");
  found.ok("processor", describe(m));
  if (m.allowed_cores.size() < static_cast<std::size_t>(m.online_cores))
    found.note("affinity", fmt::format("this process may use {} of {} cores", m.allowed_cores.size(), m.online_cores),
               "start it without taskset or cpuset if it should use all");
  if (m.cpu_quota > 0)
    found.note("container", fmt::format("the container may use {:.1f} cores at a time", m.cpu_quota),
               "run no more ranks than that, or raise --cpus: a throttled rank makes all others wait");
  double const ns = flag_round_trip_ns();
  if (!std::isfinite(ns))
    found.note("flag round trip", "there is one core only: ranks take turns", "measure with two cores or more");
  else if (ns <= near_ns)
    found.ok("flag round trip", fmt::format("{:.0f} ns between two cores: near each other", ns));
  else
    found.note("flag round trip",
               fmt::format("{:.0f} ns between two cores: far apart; shared memory is slower than it can be", ns),
               "pin the ranks to cores of one socket; in a virtual machine ask for cores that share a cache");
  if (m.load > 0.5)
    found.note("load", fmt::format("{:.1f} processes were running on average in the last minute", m.load),
               "measure on an idle machine: disturbed times are too long");
}

void look_at_launcher(findings& found) {
  found.section("Launcher");
  auto const seen = launcher_variables();
  if (seen.empty())
    found.ok("environment", "no launcher has started this process: rondo perf and compare start their own ranks");
  else
    found.ok("environment", seen);
}

std::shared_ptr<policy const> policy_of_environment() {
  char const* const path = std::getenv("RONDO_POLICY");
  return path && *path ? std::make_shared<policy const>(policy::load(path)) : nullptr;
}

void print_indented(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    auto const end = std::min(text.find('\n', at), text.size());
    fmt::print("  {}\n", text.substr(at, end - at));
    at = end + 1;
  }
}

/// For ranks that a launcher has started: what really connects them.
void print_connections() {
  fmt::print("\nWhich pair of ranks uses what, over multi\n");
  with_process_rank(environment::detect(), "multi", std::chrono::seconds(60), [](int, comm& c) {
    print_indented(c.explain());
    c.barrier();
  });
}

void print_choices(machine const& m, bool shared_memory) {
  fmt::print("\nWhat rondo would choose\n");
  fmt::print("  ranks that are threads of one process : in_process (they share memory already)\n");
  fmt::print("  processes on this host                : {}\n",
             shared_memory ? "shm (twice to ten times as fast as TCP over loopback)"
                           : "tcp, because shared memory does not work here");
  fmt::print("  ranks on several hosts                : multi: {}tcp between hosts, over the interfaces marked 'used' "
             "above\n",
             shared_memory ? "shm within a host, " : "");
  auto const measured = policy_of_environment();
  auto const explain_to = [&](situation s, std::string_view transport) {
    print_indented(explain(s, transport, measured.get()));
  };
  fmt::print("\nWhich algorithm, by {}\n", who_chooses());
  if (shared_memory)
    explain_to({.collective = collective::all_reduce,
                .bytes = 1 << 20,
                .ranks = 2,
                .shared_memory = true,
                .link = link::shared_memory},
               "shm");
  for (int const ranks : {2, 8})
    for (std::size_t const bytes : {std::size_t{1} << 10, std::size_t{25} << 20})
      explain_to({.collective = collective::all_reduce,
                  .bytes = bytes,
                  .ranks = ranks,
                  .turns = static_cast<std::size_t>(ranks) > m.allowed_cores.size(),
                  .link = link::tcp},
                 "tcp");
  explain_to({.collective = collective::all_reduce,
              .bytes = 25 << 20,
              .ranks = 8,
              .link = link::tcp,
              .link_inside = link::shared_memory,
              .hosts = 2,
              .most_on_host = 4},
             "multi on two hosts");
  fmt::print("  'rondo tune' measures it here, 'rondo compare' shows what the choice is worth.\n");
}

}  // namespace

int doctor() {
  auto const m = this_machine();
  findings found(::isatty(STDOUT_FILENO) == 1);
  look_at_cores(found, m);
  bool const shared_memory = look_at_memory(found, m);
  look_at_network(found);
  look_at_rdma(found);
  look_at_gpus(found);
  look_at_launcher(found);
  print_choices(m, shared_memory);
  if (launched_as_rank()) print_connections();
  fmt::print("\n{} problems, {} notes.\n", found.problems(), found.notes());
  return found.problems() > 0 ? 1 : 0;
}

}  // namespace rondo::bench
