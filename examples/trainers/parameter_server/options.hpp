#pragma once

#include <rondo/async/staleness.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace parameter_server_trainer {

/// The command line; the same on every rank.
struct options {
  std::string model = "mlp", data = "/usr/share/datasets/fashion-mnist";
  int servers = 1;
  std::uint64_t lead = rondo::staleness_bounds::none, delay = rondo::staleness_bounds::none;
  int lease = 10'000, step = 0;
  double slow = 1;
  int epochs = 4;
  std::size_t batch = 32, limit = std::numeric_limits<std::size_t>::max();
  double rate = 0.02, momentum = 0.5;
  std::uint64_t seed = 1;

  explicit options(CLI::App& app) {
    app.add_option("--model", model, "the net")->check(CLI::IsMember({"mlp", "conv"}))->capture_default_str();
    app.add_option("--servers", servers, "ranks that keep a shard each, from rank 0 on; the others work")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--lead", lead, "steps that a worker may be ahead of the slowest; 0: all in step");
    app.add_option("--delay", delay, "updates of others that may come between a worker's pull and its push");
    app.add_option("--lease", lease, "milliseconds after which a silent worker is not waited for")
        ->capture_default_str();
    app.add_option("--step", step, "a step takes so many milliseconds at least, as if processors were that slow")
        ->capture_default_str();
    app.add_option("--slow", slow, "the last rank takes so many times as long")->capture_default_str();
    app.add_option("--epochs", epochs, "passes over the training set, by all workers together")->capture_default_str();
    app.add_option("--batch", batch, "images a step of one worker")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--lr", rate, "learning rate")->capture_default_str();
    app.add_option("--momentum", momentum, "momentum of the descent")->capture_default_str();
    app.add_option("--seed", seed, "of the first parameters and of the order of the images")->capture_default_str();
    app.add_option("--limit", limit, "use only so many images of each set")->check(CLI::PositiveNumber);
    app.add_option("--data", data, "directory of the data set")->capture_default_str();
  }
  options(options const&) = delete;  // the parser holds references to the members
};

}  // namespace parameter_server_trainer
