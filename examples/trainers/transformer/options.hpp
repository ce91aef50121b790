#pragma once

#include "config.hpp"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace transformer {

/// The command line; the same on every rank.
struct options {
  config shape;
  std::string transport = "shm", text = "/usr/share/common-licenses/GPL-3", loss_log;
  std::size_t steps = 100, batch = 8, every = 10;
  double rate = 1e-3, decay = 0.1, max_norm = 1;
  std::uint64_t seed = 1;
  int stages = 1, microbatches = 4;
  bool sharded = false, overlap = true, ordered = false;
  std::size_t first_bucket = std::size_t{1} << 20, bucket = std::size_t{25} << 20;

  explicit options(CLI::App& app) {
    auto const number = [&](char const* name, auto& value, char const* what) {
      app.add_option(name, value, what)->check(CLI::PositiveNumber)->capture_default_str();
    };
    number("--width", shape.width, "numbers that the net knows about a position");
    number("--heads", shape.heads, "of the attention; must divide the width");
    number("--blocks", shape.blocks, "of attention and perceptron");
    number("--time", shape.time, "positions of a sequence");
    number("--batch", batch, "sequences a step, over all ranks");
    number("--steps", steps, "to make");
    number("--every", every, "print every so many steps");
    number("--lr", rate, "learning rate");
    app.add_option("--decay", decay, "weight decay")->capture_default_str();
    number("--max-norm", max_norm, "of the gradient of all parameters");
    app.add_option("--seed", seed, "of the first parameters and of the sequences")->capture_default_str();
    app.add_option("--transport", transport, "what connects the ranks")
        ->check(CLI::IsMember({"shm", "tcp"}))
        ->capture_default_str();
    app.add_option("--text", text, "to learn from")->capture_default_str();
    app.add_option("--loss-log", loss_log, "write step and loss of every step to this file");
    number("--stages", stages, "that the blocks are spread over; the ranks of a stage divide the batch");
    number("--microbatches", microbatches, "that a batch is cut into where there are stages");
    app.add_flag("--sharded", sharded, "each rank keeps a part of the state of AdamW (ZeRO-1)");
    app.add_flag("--overlap,!--no-overlap", overlap, "communicate during the backward pass")->capture_default_str();
    app.add_flag("--ordered", ordered, "sums that do not depend on buckets");
    number("--first-bucket", first_bucket, "bytes of gradients that travel first");
    number("--bucket", bucket, "bytes of gradients that travel together");
  }
  options(options const&) = delete;  // the parser holds references to the members

  void check() const {
    if (shape.width % shape.heads != 0)
      throw std::invalid_argument("--heads must divide --width: try --width 64 --heads 4");
    if (sharded && stages > 1)
      throw std::invalid_argument("--sharded takes the norm of the gradient over one stage: leave out --stages");
  }
};

}  // namespace transformer
