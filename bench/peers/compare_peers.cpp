#include "peers/compare_peers.hpp"

#include "analysis.hpp"
#include "collective.hpp"
#include "console.hpp"
#include "limit.hpp"
#include "machine.hpp"
#include "peers/system.hpp"
#include "peers/table.hpp"
#include "row.hpp"
#include "text.hpp"
#include "turns.hpp"
#include "world.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <initializer_list>
#include <memory>
#include <utility>

namespace rondo::bench::peers {
namespace {

using clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

double seconds_since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

std::vector<std::size_t> sizes_of(compare_options const& o) {
  constexpr std::size_t k = 1024, m = k * k;
  std::vector<std::size_t> sizes{8, k, 64 * k, m, 4 * m, 25 * m, 100 * m};
  if (!o.quick) sizes = {8, 64, k, 8 * k, 64 * k, 256 * k, m, 4 * m, 16 * m, 25 * m, 64 * m, 100 * m, 256 * m};
  std::erase_if(sizes, [&](std::size_t s) { return s < o.sizes.begin || (o.sizes.end > 0 && s > o.sizes.end); });
  if (sizes.empty()) throw usage_error("No size lies between --begin and --end: sizes go from 8 B to 256 MiB.");
  return sizes;
}

fs::path this_program() { return fs::read_symlink("/proc/self/exe"); }

bool uses_tcp(fs::path const& peer) { return peer.filename().string().ends_with("-tcp"); }

/// What bench/peers/build.sh has left in build/peers/run, where this program is build/NAME/bench/rondo; by name, those
/// that use TCP last.
std::vector<fs::path> built_peers() {
  std::vector<fs::path> found;
  auto const folder = this_program().parent_path().parent_path().parent_path() / "peers" / "run";
  std::error_code none;
  for (auto const& file : fs::directory_iterator(folder, none)) found.push_back(file.path());
  std::sort(found.begin(), found.end());
  std::stable_partition(found.begin(), found.end(), [](fs::path const& peer) { return !uses_tcp(peer); });
  return found;
}

int turns_of(compare_options const& o) { return o.quick ? 5 : 9; }

/// The seconds that one system has at one size in one turn; a few calls of large sizes take longer.
double turn_of(compare_options const& o, std::size_t sizes) {
  if (o.minutes == 0) return o.quick ? 0.1 : 0.2;
  auto const turns = static_cast<double>(sizes * o.ranks.size()) * turns_of(o);
  return 60 * o.minutes / turns / static_cast<double>(built_peers().size() + 5);
}

std::string name_of(role what, std::string const& library) {
  switch (what) {
    case role::limit: return "limit";
    case role::limit_in_place: return "limit in place";
    case role::registered: return "rondo, registered";
    case role::plain: return "rondo";
    case role::stream: return "rondo over TCP";
    case role::peer: return library;
    default: return library + " over TCP";
  }
}

/// All systems with one number of ranks. They take turns at each size, so that what disturbs the machine hits all of
/// them.
class contest {
 public:
  contest(compare_options const& options, std::vector<std::size_t> const& sizes, int ranks)
      : options_(options), ranks_(ranks), turn_s_(turn_of(options, sizes.size())) {
    auto const largest = sizes.back() / 4096 * 4096 + 8192;
    enter("limit", own_ranks("limit_peer"),
          {role::limit, role::limit, role::limit, role::limit_in_place, role::limit_in_place},
          2 * world_bytes(largest));
    for (auto const& transport : options.transports) {
      auto command = own_ranks("rondo_peer");
      command.push_back(transport);
      if (transport == "shm") enter(transport, command, {role::registered, role::plain});
      if (transport == "tcp") enter(transport, command, {role::stream});
    }
    for (auto const& peer : built_peers()) {
      auto const what = uses_tcp(peer) ? role::peer_stream : role::peer;
      enter(peer.filename(), {peer, std::to_string(ranks)}, {what});
    }
    welcome();
  }

  void measure(std::vector<std::size_t> const& sizes) {
    for (auto const bytes : sizes)
      if (2 * world_bytes(bytes) * systems_.size() > this_machine().available_memory)
        say(fmt::format("{} is left out: {} systems of {} ranks would need too much memory for it.",
                        format_bytes(bytes), systems_.size(), ranks_));
      else
        sizes_.push_back(bytes);
    flag_ns_.resize(sizes_.size());
    for (std::size_t i = 0; i < sizes_.size(); ++i) measure_size(i);
    // Cores stay apart for longer than all turns of a small size take: another try, now that time has passed.
    for (std::size_t i = 0; i < sizes_.size(); ++i)
      if (ever_near_ && flag_ns_[i] > near_ns) measure_size(i);
  }

  std::string table() const {
    auto text =
        fmt::format("{} ranks, median us of the slowest rank, {} turns at each size\n", ranks_, turns_of(options_)) +
        table_of(sizes_, flag_ns_, entries_);
    if (left_out_ > 0)
      text += fmt::format("Turns that do not count, because the cores were apart (a round trip above {:.0f} ns): {}.\n",
                          near_ns, left_out_);
    return text;
  }
  bool right() const { return right_; }

  std::vector<row> rows() const {
    std::vector<row> all;
    auto const limits = best_of(entries_, [](role r) { return r == role::limit || r == role::limit_in_place; });
    for (std::size_t e = 0; e < entries_.size(); ++e)
      for (std::size_t i = 0; i < sizes_.size(); ++i) {
        auto const& c = entries_[e].cells[i];
        if (c.calls == 0) continue;
        row r;
        r.transport = ids_[e];
        r.ranks = ranks_;
        r.algorithm = "automatic";
        r.collective = "all_reduce";
        r.type = "float";
        r.op = "sum";
        r.bytes = sizes_[i];
        r.count = sizes_[i] / sizeof(float);
        r.in_place = entries_[e].what != role::limit;
        r.iterations = c.calls;
        r.min_us = c.us.min;
        r.p50_us = c.us.p50;
        r.p99_us = c.us.p99;
        r.algbw_GBps = static_cast<double>(r.bytes) / r.p50_us / 1e3;
        r.busbw_GBps = r.algbw_GBps * bus_factor(collective::all_reduce, ranks_);
        r.wrong = c.wrong;
        r.checked = true;
        r.flag_round_trip_ns = flag_ns_[i];
        r.limit_us = limits.empty() ? not_measured : limits[i];
        all.push_back(std::move(r));
      }
    return all;
  }

 private:
  /// One way in which a system does the call. The fastest of those that share an entry counts.
  struct series {
    std::size_t system;
    int index;  ///< among the series of the system
    role what;
    std::size_t entry = 0;
    int timed = 0;      ///< calls in a turn
    double left_s = 0;  ///< for more turns at this size
    std::vector<std::vector<double>> turns{};
    bool wrong = false;
  };

  std::size_t world_bytes(std::size_t bytes) const { return static_cast<std::size_t>(ranks_) * bytes; }

  std::vector<std::string> own_ranks(char const* program) const {
    auto const here = this_program();
    return {here, "launch", "--no-prefix", "-n", std::to_string(ranks_), "--", here.parent_path() / program};
  }

  void say(std::string const& sentence) {
    progress_.clear();
    fmt::print(stderr, "rondo: {}\n", sentence);
  }

  void enter(std::string const& id, std::vector<std::string> command, std::initializer_list<role> roles,
             std::size_t shared_bytes = 0) {
    int index = 0;
    for (auto const r : roles) series_.push_back({systems_.size(), index++, r});
    systems_.push_back(std::make_unique<system>(id, std::move(command), ranks_, shared_bytes, options_.pin));
  }

  /// Waits for all ranks; whoever is there gets its entries in the table.
  void welcome() {
    auto const deadline = clock::now() + std::chrono::seconds(options_.timeout_s);
    for (auto& s : systems_) attempt(s, [&] { s->welcome(deadline); });
    std::erase_if(series_, [&](series const& s) { return !systems_[s.system]; });
    for (auto& s : series_) {
      auto const& library = *systems_[s.system];
      auto id = library.id() + (s.what == role::registered       ? ", registered"
                                : s.what == role::limit_in_place ? ", in place"
                                                                 : "");
      if (ids_.empty() || ids_.back() != id) {
        entries_.push_back({name_of(s.what, library.name()), s.what, {}});
        ids_.push_back(std::move(id));
      }
      s.entry = entries_.size() - 1;
    }
  }

  /// Does something with a system, if it is still there; one that fails is there no more.
  template <class Action>
  void attempt(std::unique_ptr<system>& s, Action&& action) {
    if (!s) return;
    try {
      action();
    } catch (world_error const& e) {
      say(e.what());
      right_ = right_ && s->id() != "shm" && s->id() != "tcp" && s->id() != "limit";
      s.reset();
    }
  }

  std::vector<double> play(series& s, turn const& t) {
    outcome_of_turn found;
    auto& ranks = systems_[s.system];
    attempt(ranks, [&] { found = ranks->play(t, clock::now() + std::chrono::seconds(options_.timeout_s)); });
    s.wrong = s.wrong || found.wrong > 0;
    return std::move(found.slowest_us);
  }

  void measure_size(std::size_t i) {
    auto const bytes = sizes_[i];
    for (auto& s : series_) prepare(s, bytes);
    turns taken(turns_of(options_), ever_near_);
    for (double before = flag_round_trip_ns(), after; !taken.enough(); before = after) {
      for (auto& s : series_) {
        progress_.show(fmt::format("{} ranks, {}, turn {}: {}", ranks_, format_bytes(bytes), taken.size() + 1,
                                   entries_[s.entry].name));
        take_turn(s, bytes);
      }
      after = flag_round_trip_ns();
      taken.add(std::fmax(before, after));
    }
    progress_.clear();
    ever_near_ = taken.ever_near();
    auto const counted = taken.counted();
    left_out_ += taken.size() - counted.size();
    for (auto& e : entries_) {
      e.cells.resize(sizes_.size());
      e.cells[i] = {.us = {}, .calls = 0, .wrong = e.cells[i].wrong};
    }
    for (auto& s : series_) finish(s, i, counted);
    flag_ns_[i] = taken.flag_ns();
  }

  /// Brings a series to a size, and finds out how many calls its turns can have.
  void prepare(series& s, std::size_t bytes) {
    s.turns.clear();
    s.wrong = false;
    s.left_s = std::max(patience_in_turns * turns_of(options_) * turn_s_, 2.0);
    play(s, {bytes, s.index, 1, 1});
    double one_s = 0;
    for (int calls = 1; calls <= 100 && one_s < 1e-3; calls *= 10) {
      auto const start = clock::now();
      play(s, {bytes, s.index, 0, calls});
      one_s = seconds_since(start) / calls;
    }
    s.timed = iterations_for(turn_s_, one_s, 2, most_timed);
  }

  void take_turn(series& s, std::size_t bytes) {
    auto& times = s.turns.emplace_back();
    if (s.left_s < 0) return;
    auto const start = clock::now();
    times = play(s, {bytes, s.index, std::clamp(s.timed / 10, 1, 20), s.timed});
    s.left_s -= seconds_since(start);
  }

  /// Puts what was measured in the given turns into the table.
  void finish(series const& s, std::size_t size, std::vector<std::size_t> const& counted) {
    std::vector<double> times;
    for (auto const t : counted) times.insert(times.end(), s.turns[t].begin(), s.turns[t].end());
    auto& best = entries_[s.entry].cells[size];
    auto const us = summarise(times);
    best.wrong = best.wrong || s.wrong;
    if (best.calls > 0 && !(us.p50 < best.us.p50)) return;
    best.us = us;
    best.calls = static_cast<int>(times.size());
  }

  /// Large sizes take longer than their turns; who needs more than this many times what it should leaves out the last.
  static constexpr double patience_in_turns = 8;

  compare_options const& options_;
  int ranks_;
  double turn_s_;
  std::vector<std::unique_ptr<system>> systems_;
  std::vector<series> series_;
  std::vector<entry> entries_;
  std::vector<std::string> ids_;  ///< of the entries, for programs
  std::vector<std::size_t> sizes_;
  std::vector<double> flag_ns_;
  std::size_t left_out_ = 0;  ///< turns
  bool ever_near_ = false;    ///< the cores, in any turn so far
  progress_line progress_;
  bool right_ = true;
};

}  // namespace

int compare(compare_options const& given) {
  auto o = given;
  if (launched_as_rank()) throw usage_error("rondo compare starts its own ranks: run it without a launcher.");
  if (o.ranks.empty()) o.ranks = {2};
  for (int const ranks : o.ranks)
    if (ranks < 2 || ranks > most_ranks)
      throw usage_error(fmt::format("Peers are compared with 2 to {} ranks, not with {}.", most_ranks, ranks));
  std::erase(o.transports, "in_process");  // peers are processes
  if (o.transports.empty()) throw usage_error("Peers are compared with rondo over shm or tcp: choose one of them.");
  auto const sizes = sizes_of(o);
  auto const start = clock::now();
  auto const m = this_machine();
  fmt::print("all_reduce of float, sum, in place, on {}; load {:.1f}\n", describe(m), m.load);
  if (built_peers().empty()) fmt::print(stderr, "rondo: There are no peers: build them with bench/peers/build.sh.\n");
  ::setenv("RONDO", this_program().c_str(), 1);  // for peers that have no launcher of their own
  std::vector<row> rows;
  bool right = true;
  for (int const ranks : o.ranks) {
    contest all(o, sizes, ranks);
    all.measure(sizes);
    fmt::print("\n{}", all.table());
    std::fflush(stdout);
    right = right && all.right();
    for (auto& r : all.rows()) rows.push_back(std::move(r));
  }
  auto const verdict = judge(rows);
  fmt::print("\n{} results, {} of them wrong. {:.0f} s.\n", verdict.rows, verdict.wrong, seconds_since(start));
  if (!o.json.empty()) write_json(o.json, rows);
  return right && verdict.good() ? 0 : 1;
}

}  // namespace rondo::bench::peers
