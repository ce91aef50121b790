#pragma once

#include "config.hpp"
#include "stage.hpp"
#include "text.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace transformer {

/// The whole net on one rank: embedding, blocks, head.
template <class T>
class model {
 public:
  model(config const& c, std::uint64_t seed) : all_(c, seed, 0, 1) {}

  std::span<T> values() noexcept { return all_.values(); }
  std::span<T const> values() const noexcept { return all_.values(); }
  std::span<T> gradient() noexcept { return all_.gradient(); }

  /// Calls f(name, values, gradient) for each tensor, in the order of their numbers.
  template <class F>
  void each_tensor(F&& f) {
    all_.each_tensor(f);
  }

  /// The loss of some sequences, summed over their positions; `next` has the tokens that follow each of `tokens`.
  T forward(std::span<std::uint8_t const> tokens, std::span<std::uint8_t const> next) {
    T loss = 0;
    all_.forward(0, {{tokens.begin(), tokens.end()}, {next.begin(), next.end()}}, {}, loss);
    return loss;
  }

  /// Adds the gradient of what forward() returned last. Calls ready(tensor) when that of a tensor is complete, the last
  /// part first.
  void backward(std::function<void(std::size_t)> const& ready = [](std::size_t) {}) { all_.backward(0, {}, ready); }

 private:
  stage<T> all_;
};

}  // namespace transformer
