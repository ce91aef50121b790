#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace fashion_mnist {

/// The order in which an epoch visits the images: a function of its arguments only, so every rank gets the same one
/// without talking. Spelled out (Fisher, Yates) because std::shuffle differs between standard libraries.
inline std::vector<std::size_t> shuffled(std::size_t count, std::uint64_t seed, int epoch) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::seed_seq mixed{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                      static_cast<std::uint32_t>(epoch)};
  std::mt19937_64 random(mixed);
  for (std::size_t left = count; left > 1; --left) std::swap(order[left - 1], order[random() % left]);
  return order;
}

/// The contiguous part of a batch that belongs to a rank: sizes differ by one at the most, and may be 0.
inline std::span<std::size_t const> share(std::span<std::size_t const> batch, int rank, int size) {
  auto const bound = [&](int r) { return batch.size() * static_cast<std::size_t>(r) / static_cast<std::size_t>(size); };
  return batch.subspan(bound(rank), bound(rank + 1) - bound(rank));
}

}  // namespace fashion_mnist
