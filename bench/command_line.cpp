#include "command_line.hpp"

#include "compare.hpp"
#include "doctor.hpp"
#include "launch.hpp"
#include "peers/compare_peers.hpp"
#include "perf.hpp"
#include "schedule_command.hpp"
#include "simulate.hpp"
#include "text.hpp"
#include "tune.hpp"
#include <rondo/version.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>
#include <fmt/format.h>
#include <memory>
#include <string_view>

namespace rondo::bench {
namespace {

using texts = std::vector<std::string>;

/// Comma lists and repeated options are the same thing.
texts flat(texts const& given) {
  texts all;
  for (auto const& text : given)
    for (auto& piece : split_list(text)) all.push_back(std::move(piece));
  return all;
}

template <class Parse>
auto each(texts const& given, Parse&& parse) {
  std::vector<decltype(parse(std::string()))> all;
  for (auto const& piece : flat(given)) all.push_back(parse(piece));
  return all;
}

template <class Parse, class T>
auto each_or_all(texts const& given, Parse&& parse, std::vector<T> everything) {
  auto const pieces = flat(given);
  return std::find(pieces.begin(), pieces.end(), "all") != pieces.end() ? everything : each(pieces, parse);
}

int ranks_from(std::string const& text) {
  int ranks = 0;
  auto const [end, status] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (status != std::errc{} || end != text.data() + text.size() || ranks < 1 || ranks > 256)
    throw usage_error(
        fmt::format("'{}' is not a number of ranks: give one from 1 to 256, or a list such as 2,4.", text));
  return ranks;
}

texts transports_from(texts const& given) {
  auto const known = transport_names();
  auto const wanted = flat(given);
  if (std::find(wanted.begin(), wanted.end(), "all") != wanted.end()) return usual_transports();
  for (auto const& name : wanted)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw usage_error(fmt::format("There is no transport '{}': choose {}.", name, one_of(known)));
  return wanted;
}

std::string transport_help(std::string_view otherwise) {
  return fmt::format("{}; all: {} ({})", join_words(transport_names(), "or"), join_words(usual_transports()),
                     otherwise);
}

CLI::Option* list(CLI::App& app, char const* flags, texts& into, std::string const& help) {
  return app.add_option(flags, into, help)->allow_extra_args(false)->type_name("LIST");
}

CLI::Option* bytes(CLI::App& app, char const* flags, std::size_t& into, char const* help) {
  return app
      .add_option_function<std::string>(
          flags, [&into](std::string const& text) { into = parse_bytes(text); }, help)
      ->type_name("BYTES");
}

void add_perf(CLI::App& command, int& status) {
  auto& app = *command.add_subcommand("perf", "Measure and check collectives; options and columns of nccl-tests");
  struct state {
    perf_options options;
    texts types{"float"}, ops{"sum"}, collectives{"all_reduce"}, algorithms{"automatic"}, transports{"shm"}, ranks,
        models;
    bool no_pin = false, no_limit = false;
  };
  auto const s = std::make_shared<state>();
  auto& o = s->options;
  bytes(app, "-b,--begin,--minbytes", o.sizes.begin, "smallest size (8)");
  bytes(app, "-e,--end,--maxbytes", o.sizes.end, "largest size (64M)");
  app.add_option("-f,--factor,--stepfactor", o.sizes.factor, "factor between sizes (8)");
  bytes(app, "-i,--step,--stepbytes", o.sizes.step, "bytes between sizes, instead of a factor");
  app.add_option("-n,--iterations,--iters", o.iterations, "timed iterations (as many as fit into --budget)")
      ->check(CLI::PositiveNumber);
  app.add_option("-w,--warm-up,--warmup_iters", o.warm_up, "iterations before (3)")->check(CLI::NonNegativeNumber);
  app.add_option("-c,--check", o.checks, "repetitions with every element checked; 0: none (1)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--budget", o.budget_s, "seconds for each series of calls (0.3)")->check(CLI::PositiveNumber);
  list(app, "-d,--type,--datatype", s->types, "types of elements, or all (float)");
  list(app, "-o,--op", s->ops, "sum, prod, min, max, avg, mulsum, or all (sum)");
  app.add_option("-r,--root", o.root, "root rank (0)")->check(CLI::NonNegativeNumber);
  app.add_option("-T,--timeout", o.timeout_s, "seconds until a call that does not end is an error (120)")
      ->check(CLI::PositiveNumber);
  list(app, "--transport", s->transports, transport_help("shm"));
  list(app, "--algorithm", s->algorithms, "ring, tree, …, or all (automatic)");
  list(app, "--collective", s->collectives, "all_reduce, reduce_scatter, …, or all (all_reduce)");
  list(app, "--ranks", s->ranks, "numbers of ranks to start (2)");
  list(app, "--model", s->models, "gradients of a model instead of sizes: gpt2, resnet50, bert-base, llama3-8b");
  bytes(app, "--bucket", o.bucket, "size of gradient buckets (25M)");
  bytes(app, "--memory", o.memory, "memory for a model's gradients on each rank; larger ones take turns in it (1G)");
  app.add_option("--json", o.json, "write all rows to this file as JSON")->type_name("FILE");
  app.add_option("--csv", o.csv, "write all rows to this file as CSV")->type_name("FILE");
  app.add_flag("--no-pin", s->no_pin, "do not give every rank a core of its own");
  app.add_flag("--no-limit", s->no_limit, "do not measure the machine's limit");
  app.footer("Ranks are forked here, or are those that rondo launch, torchrun, mpirun or srun started.\n"
             "Example: rondo perf -b 8 -e 64M -f 8 --transport shm,tcp --algorithm all --ranks 2,4");
  app.callback([s, &status] {
    auto& o = s->options;
    o.types = each_or_all(s->types, datatype_from, all_datatypes());
    o.ops = each_or_all(s->ops, reduction_from, all_reductions());
    o.collectives = each_or_all(s->collectives, parse_collective, all_collectives());
    o.algorithms = flat(s->algorithms);
    o.transports = transports_from(s->transports);
    o.ranks = each(s->ranks, ranks_from);
    o.models = flat(s->models);
    for (auto const& m : o.models) workloads_of(m, datatype::float32, o.bucket);
    for (int const p : o.ranks)
      if (o.root >= p)
        throw usage_error(fmt::format("There is no rank {} for -r: {} ranks are 0 to {}.", o.root, p, p - 1));
    o.pin = !s->no_pin;
    o.limit = !s->no_limit;
    status = perf(o);
  });
}

void add_compare(CLI::App& command, int& status) {
  auto& app = *command.add_subcommand("compare", "Compare all algorithms over all transports: a table and report.html");
  struct state {
    compare_options options;
    std::string collective = "all_reduce";
    texts transports{"all"}, algorithms{"all"}, ranks, models;
    bool no_pin = false, peers = false;
  };
  auto const s = std::make_shared<state>();
  auto& o = s->options;
  app.add_flag("--quick", o.quick, "less than 90 seconds: fewer sizes and iterations");
  auto* const collective = app.add_option("--collective", s->collective, "what to compare (all_reduce)");
  list(app, "--transport", s->transports, transport_help("all"));
  auto* const algorithm = list(app, "--algorithm", s->algorithms, "ring, tree, …, or all (all)");
  list(app, "--ranks", s->ranks, "numbers of ranks (2,3,4; with --peers: 2)");
  auto* const model = list(app, "--model", s->models,
                           "models whose whole gradients are timed too, or none (gpt2,resnet50; quick: resnet50)");
  bytes(app, "-b,--begin", o.sizes.begin, "smallest size (8)");
  bytes(app, "-e,--end", o.sizes.end, "largest size (64M; quick: 4M; with --peers: 256M; quick: 100M)");
  auto* const factor = app.add_option("-f,--factor", o.sizes.factor, "factor between sizes (8)");
  app.add_option("--minutes", o.minutes, "time to measure (3.6; quick: 0.8)")->check(CLI::PositiveNumber);
  app.add_option("-T,--timeout", o.timeout_s, "seconds until a call that does not end is an error (30)")
      ->check(CLI::PositiveNumber);
  auto* const report = app.add_option("--report", o.report, "the page to write (report.html)")->type_name("FILE");
  app.add_option("--json", o.json, "write all rows to this file as JSON")->type_name("FILE");
  app.add_flag("--no-pin", s->no_pin, "do not give every rank a core of its own");
  auto* const peers = app.add_flag("--peers", s->peers,
                                   "rather compare all_reduce with the libraries that bench/peers/build.sh has built");
  for (auto* const other : {collective, algorithm, model, factor, report}) peers->excludes(other);
  app.callback([s, &status] {
    auto& o = s->options;
    o.what = parse_collective(s->collective);
    o.transports = transports_from(s->transports);
    o.algorithms = flat(s->algorithms);
    o.ranks = each(s->ranks, ranks_from);
    o.models = flat(s->models);
    o.pin = !s->no_pin;
    status = s->peers ? peers::compare(o) : compare(o);
  });
}

void add_tune(CLI::App& command, int& status) {
  auto& app = *command.add_subcommand("tune", "Measure which algorithm is the fastest here, for RONDO_POLICY");
  struct state {
    tune_options options;
    texts collectives, transports{"all"}, ranks;
    bool no_pin = false;
  };
  auto const s = std::make_shared<state>();
  auto& o = s->options;
  list(app, "--collective", s->collectives, "all_reduce, … (those that several algorithms offer)");
  list(app, "--transport", s->transports, transport_help("all"));
  list(app, "--ranks", s->ranks, "numbers of ranks (2,3,4)");
  bytes(app, "-b,--begin", o.sizes.begin, "smallest size (8)");
  bytes(app, "-e,--end", o.sizes.end, "largest size (64M)");
  app.add_option("-f,--factor", o.sizes.factor, "factor between sizes (8)");
  app.add_option("--minutes", o.minutes, "time to measure (8)")->check(CLI::PositiveNumber);
  app.add_option("-T,--timeout", o.timeout_s, "seconds until a call that does not end is an error (30)")
      ->check(CLI::PositiveNumber);
  app.add_option("-o,--output", o.file, "the file to write (rondo.policy)")->type_name("FILE");
  app.add_flag("--no-pin", s->no_pin, "do not give every rank a core of its own");
  app.callback([s, &status] {
    auto& o = s->options;
    o.collectives = each(s->collectives, parse_collective);
    o.transports = transports_from(s->transports);
    if (!s->ranks.empty()) o.ranks = each(s->ranks, ranks_from);
    o.pin = !s->no_pin;
    status = tune(o);
  });
}

void add_schedule(CLI::App& command, int& status) {
  auto& app = *command.add_subcommand("schedule", "Show what an algorithm makes every rank do, round by round");
  auto const o = std::make_shared<schedule_options>();
  app.add_option("algorithm", o->algorithm, "ring, tree, recursive_halving, …")->required();
  app.add_option("--collective", o->collective, "all_reduce, reduce_scatter, … (all_reduce)");
  app.add_option("--ranks", o->ranks, "number of ranks (4)")->check(CLI::Range(1, 4096));
  app.add_option("-r,--root", o->root, "root rank (0)")->check(CLI::NonNegativeNumber);
  app.add_option("--svg", o->svg, "draw it into this file")->type_name("FILE");
  app.add_flag("--verify", o->verify, "prove that it is correct, and say which bits are the same");
  app.callback([o, &status] { status = show_schedule(*o); });
}

void add_simulate(CLI::App& command, int& status) {
  auto& app = *command.add_subcommand("simulate", "Predict times on a network that you do not have, by the cost model");
  struct state {
    simulate_options options;
    texts ranks{"4,64,1024"}, sizes{"1K,1M,64M"};
  };
  auto const s = std::make_shared<state>();
  auto& o = s->options;
  app.add_option("--collective", o.collective, "all_reduce, reduce_scatter, … (all_reduce)");
  list(app, "--ranks", s->ranks, "numbers of ranks, up to 65536 (4,64,1024)");
  list(app, "--bytes", s->sizes, "sizes (1K,1M,64M)");
  app.add_option("--alpha", o.alpha_us, "latency of a message in us (5)")->check(CLI::NonNegativeNumber);
  app.add_option("--beta", o.beta_GBps, "bandwidth of a link in GB/s (12.5)")->check(CLI::PositiveNumber);
  app.add_option("--gamma", o.gamma_GBps, "speed of folding in GB/s (20)")->check(CLI::PositiveNumber);
  app.callback([s, &status] {
    s->options.ranks = each(s->ranks, [](std::string const& text) {
      int p = 0;
      auto const [end, bad] = std::from_chars(text.data(), text.data() + text.size(), p);
      if (bad != std::errc{} || end != text.data() + text.size() || p < 2 || p > 65536)
        throw usage_error(fmt::format("'{}' is not a number of ranks to simulate: give one from 2 to 65536.", text));
      return p;
    });
    s->options.bytes = each(s->sizes, [](std::string const& text) { return parse_bytes(text); });
    status = simulate(s->options);
  });
}

int complain(char const* what, int status) {
  fmt::print(stderr, "rondo: {}\n", std::string_view(what).starts_with("rondo: ") ? what + 7 : what);
  return status;
}

}  // namespace

int run_command(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "launch") return launch(argc - 1, argv + 1);
  int status = 0;
  CLI::App app("rondo compares collectives for gradient synchronisation over the interconnects of this machine.",
               "rondo");
  app.set_version_flag("--version",
                       fmt::format("rondo {}.{}.{}", RONDO_VERSION_MAJOR, RONDO_VERSION_MINOR, RONDO_VERSION_PATCH));
  app.require_subcommand(1);
  app.footer("Start with 'rondo doctor', then 'rondo compare --quick'. 'rondo perf --help' explains one command.");
  add_perf(app, status);
  add_compare(app, status);
  add_tune(app, status);
  app.add_subcommand("doctor",
                     "What this machine offers, what rondo would choose and why, and how to mend what is wrong")
      ->callback([&status] { status = doctor(); });
  add_schedule(app, status);
  add_simulate(app, status);
  app.add_subcommand("launch", "Start local ranks: rondo launch -n 4 -- ./trainer …");
  try {
    app.parse(argc, argv);
    return status;
  } catch (CLI::Success const& e) { return app.exit(e); } catch (CLI::ParseError const& e) {
    return complain(fmt::format("{}. See 'rondo --help'.", e.what()).c_str(), 2);
  } catch (usage_error const& e) { return complain(e.what(), 2); } catch (invalid_argument const& e) {
    return complain(e.what(), 2);
  } catch (std::exception const& e) { return complain(e.what(), 1); }
}

}  // namespace rondo::bench
