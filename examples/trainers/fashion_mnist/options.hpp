#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace fashion_mnist {

/// The command line; the same on every rank.
struct options {
  std::string model = "mlp", transport = "shm", type = "float";
  int epochs = 10;
  std::size_t batch = 128, warm_up = 0;
  double rate = 0.02, momentum = 0.9;
  std::uint64_t seed = 1;
  std::size_t limit = std::numeric_limits<std::size_t>::max();
  std::size_t bucket = std::size_t{64} << 10;
  bool overlap = true;
  std::string data = "/usr/share/datasets/fashion-mnist", compress, loss_log;

  explicit options(CLI::App& app) {
    app.add_option("--model", model, "the net")->check(CLI::IsMember({"mlp", "conv"}))->capture_default_str();
    app.add_option("--transport", transport, "what connects the ranks")
        ->check(CLI::IsMember({"shm", "tcp"}))
        ->capture_default_str();
    app.add_option("--type", type, "type of the numbers")
        ->check(CLI::IsMember({"float", "double"}))
        ->capture_default_str();
    app.add_option("--epochs", epochs, "passes over the training set")->capture_default_str();
    app.add_option("--batch", batch, "images a step, over all ranks")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--lr", rate, "learning rate")->capture_default_str();
    app.add_option("--momentum", momentum, "momentum of the descent")->capture_default_str();
    app.add_option("--seed", seed, "of the first parameters and of the order of the images")->capture_default_str();
    app.add_option("--limit", limit, "use only so many images of each set")->check(CLI::PositiveNumber);
    app.add_option("--bucket", bucket, "bytes of gradients that travel together")->capture_default_str();
    app.add_flag("--overlap,!--no-overlap", overlap, "communicate during the backward pass")->capture_default_str();
    app.add_option("--compress", compress,
                   "send less: float16, bfloat16, int8, float8, one_bit, top_k:RATIO or powersgd:RANK");
    app.add_option("--warm-up", warm_up, "steps before that, which send all")->capture_default_str();
    app.add_option("--data", data, "directory of the data set")->capture_default_str();
    app.add_option("--loss-log", loss_log, "write step and loss of every step to this file");
  }
  options(options const&) = delete;  // the parser holds references to the members
};

}  // namespace fashion_mnist
