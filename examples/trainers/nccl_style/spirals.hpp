#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

namespace nccl_style {

/// A point of the plane, and which of the arms of a spiral it lies on.
struct sample {
  double x, y;
  int arm;
};

inline constexpr int arms = 3;

/// Uniform in [0, 1), a function of n alone (SplitMix64, Steele et al. 2014): the same data on every machine.
inline double uniform(std::uint64_t n) {
  std::uint64_t z = (n + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return static_cast<double>((z ^ z >> 31) >> 11) * 0x1p-53;
}

/// Points along intertwined spirals, with some noise: no straight line parts them.
inline std::vector<sample> spirals(int count) {
  std::vector<sample> all;
  for (int i = 0; i < count; ++i) {
    auto const n = static_cast<std::uint64_t>(i) * 2;
    int const arm = i % arms;
    double const along = uniform(n);
    double const angle = 4 * along + 2 * std::numbers::pi * arm / arms + 0.2 * (uniform(n + 1) - 0.5);
    all.push_back({along * std::cos(angle), along * std::sin(angle), arm});
  }
  return all;
}

}  // namespace nccl_style
