#pragma once

#include <rondo/communicator.hpp>
#include <rondo/gradient/parameter.hpp>
#include <rondo/transports/in_process.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gradient_test {

using namespace rondo;
using comm = communicator<in_process>;

/// Runs body on ranks that are threads; calls have a deadline of 20 s.
inline void on_ranks(int n, std::function<void(comm&)> const& body, bool ordered = false) {
  auto const groups = in_process_group::make(n);
  std::vector<std::jthread> threads;
  for (rank_t r = 0; r < n; ++r)
    threads.emplace_back([&body, ordered, g = groups[static_cast<std::size_t>(r)]]() mutable {
      try {
        comm c(g, in_process::connect(g), {.deadline = std::chrono::seconds(20), .ordered = ordered});
        g.reset();
        body(c);
      } catch (std::exception const& e) { ADD_FAILURE() << "a rank threw: " << e.what(); }
    });
}

/// The message of the E that f throws.
template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (E const& e) { return e.what(); }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline void expect_says(std::string const& message, std::string const& part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

/// All ranks hold the same bytes.
inline void expect_same_bits(comm& c, std::span<std::byte const> bytes) {
  std::vector<std::byte> all(bytes.size() * static_cast<std::size_t>(c.size()));
  c.all_gather(bytes, all);
  for (std::size_t r = 1; r < static_cast<std::size_t>(c.size()); ++r)
    ASSERT_EQ(std::memcmp(all.data(), all.data() + r * bytes.size(), bytes.size()), 0) << "rank " << r;
}

inline std::vector<std::size_t> shuffled(std::size_t n, std::uint64_t seed) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(seed);
  for (std::size_t left = n; left > 1; --left) std::swap(order[left - 1], order[random() % left]);
  return order;
}

/// A net of two layers, y = A tanh(B x + b) + a, and the squared distance from a target, both written out.
template <class T>
class small_net {
 public:
  static constexpr std::size_t inputs = 16, hidden = 48, outputs = 8;

  small_net() {
    std::mt19937_64 random(3);
    for (auto* const tensor : {&B, &b, &A, &a})
      for (T& value : *tensor) value = static_cast<T>(static_cast<double>(random() >> 11) * 0x1p-54 - 0.125);
  }

  std::vector<parameter> parameters() { return {{"B", B, dB}, {"b", b, db}, {"A", A, dA}, {"a", a, da}}; }

  /// The loss of sample `s`, whose gradients are added.
  T sample(std::uint64_t s) {
    std::mt19937_64 random(s);
    auto const draw = [&] { return static_cast<T>(static_cast<double>(random() >> 11) * 0x1p-52 - 1); };
    std::vector<T> x(inputs), h(hidden), dh(hidden);
    for (T& value : x) value = draw();
    for (std::size_t j = 0; j < hidden; ++j) {
      h[j] = b[j];
      for (std::size_t i = 0; i < inputs; ++i) h[j] += B[j * inputs + i] * x[i];
      h[j] = std::tanh(h[j]);
    }
    T loss = 0;
    for (std::size_t k = 0; k < outputs; ++k) {
      T y = a[k] - draw();
      for (std::size_t j = 0; j < hidden; ++j) y += A[k * hidden + j] * h[j];
      loss += y * y;
      da[k] += 2 * y;
      for (std::size_t j = 0; j < hidden; ++j) {
        dA[k * hidden + j] += 2 * y * h[j];
        dh[j] += 2 * y * A[k * hidden + j];
      }
    }
    for (std::size_t j = 0; j < hidden; ++j) {
      T const slope = dh[j] * (1 - h[j] * h[j]);
      db[j] += slope;
      for (std::size_t i = 0; i < inputs; ++i) dB[j * inputs + i] += slope * x[i];
    }
    return loss;
  }

  /// Calls f(values, gradient) for each tensor.
  template <class F>
  void each(F&& f) {
    f(B, dB), f(b, db), f(A, dA), f(a, da);
  }

  void clear() {
    each([](auto&, auto& gradient) { std::fill(gradient.begin(), gradient.end(), T(0)); });
  }
  void descend(T rate) {
    each([rate](auto& values, auto const& gradient) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] -= rate * gradient[i];
    });
  }

  std::vector<T> B = std::vector<T>(hidden * inputs), b = std::vector<T>(hidden), A = std::vector<T>(outputs * hidden),
                 a = std::vector<T>(outputs), dB = B, db = b, dA = A, da = a;
};

}  // namespace gradient_test
