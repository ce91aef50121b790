#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace transformer {

/// Sequences of bytes, and what follows each of them.
struct sequences {
  std::vector<std::uint8_t> tokens, next;
};

/// A text, one token a byte.
class text {
 public:
  explicit text(std::string const& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    if (bytes_.size() < 4096)
      throw std::runtime_error("cannot read 4 KiB of text from " + path + ": name another file with --text");
  }

  /// Sequences first … last - 1 of the batch of a step: a function of its arguments only, so that ranks need not talk
  /// to share a batch.
  sequences draw(std::uint64_t seed, std::size_t step, std::size_t first, std::size_t last, std::size_t time) const {
    sequences all;
    for (std::size_t i = first; i < last; ++i) {
      std::seed_seq mixed{seed, std::uint64_t{step}, std::uint64_t{i}};
      std::size_t const from = std::mt19937_64(mixed)() % (bytes_.size() - time);
      auto const begin = bytes_.begin() + static_cast<std::ptrdiff_t>(from);
      all.tokens.insert(all.tokens.end(), begin, begin + static_cast<std::ptrdiff_t>(time));
      all.next.insert(all.next.end(), begin + 1, begin + static_cast<std::ptrdiff_t>(time) + 1);
    }
    return all;
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace transformer
