#include "pattern.hpp"

#include "cpp_types.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace rondo::bench {
namespace {

constexpr std::size_t period = 4099;

/// A random word that depends on nothing but its arguments (the finaliser of splitmix64).
std::uint64_t random_word(std::uint64_t stream, std::uint64_t index) {
  std::uint64_t z = stream * 0x9e3779b97f4a7c15 + index * 0xd1342543de82ef95 + 0x632be59bd9b4e019;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// In [0, 1).
double random_fraction(std::uint64_t stream, std::uint64_t index) {
  return static_cast<double>(random_word(stream, index) >> 11) * 0x1p-53;
}

/// What both kinds of pattern share: one table of inputs for each rank.
template <class T>
class table_pattern : public pattern {
 public:
  void fill(void* data, std::size_t count, int rank, std::size_t offset, std::size_t phase) const final {
    auto const* table = input(rank);
    for_runs(count, offset + phase, [&](std::size_t at, std::size_t entry, std::size_t length) {
      std::memcpy(static_cast<T*>(data) + at, table + entry, length * sizeof(T));
    });
  }

  std::size_t count_wrong(void const* data, std::size_t count, int source, std::size_t offset,
                          std::size_t phase) const final {
    std::size_t wrong = 0;
    for_runs(count, offset + phase, [&](std::size_t at, std::size_t entry, std::size_t length) {
      auto const* got = static_cast<T const*>(data) + at;
      if (source < 0)
        wrong += wrong_sums(got, length, entry);
      else if (std::memcmp(got, input(source) + entry, length * sizeof(T)) != 0)
        for (std::size_t i = 0; i < length; ++i)
          wrong += std::memcmp(got + i, input(source) + entry + i, sizeof(T)) != 0 ? 1 : 0;
    });
    return wrong;
  }

 protected:
  explicit table_pattern(int ranks) : ranks_(ranks), inputs_(static_cast<std::size_t>(ranks) * period) {}

  virtual std::size_t wrong_sums(T const* got, std::size_t count, std::size_t entry) const = 0;

  T* input(int rank) { return inputs_.data() + static_cast<std::size_t>(rank) * period; }
  T const* input(int rank) const { return inputs_.data() + static_cast<std::size_t>(rank) * period; }
  int ranks() const { return ranks_; }

 private:
  template <class F>
  static void for_runs(std::size_t count, std::size_t position, F&& run) {
    std::size_t entry = position % period;
    for (std::size_t at = 0; at < count; entry = 0) {
      auto const length = std::min(period - entry, count - at);
      run(at, entry, length);
      at += length;
    }
  }

  int ranks_;
  std::vector<T> inputs_;
};

__extension__ using wide = __int128;

template <class T>
class integer_pattern final : public table_pattern<T> {
 public:
  integer_pattern(reduction op, int ranks) : table_pattern<T>(ranks), expected_(period) {
    for (std::size_t i = 0; i < period; ++i) {
      for (int r = 0; r < ranks; ++r) {
        auto const word = random_word(static_cast<std::uint64_t>(r), i);
        this->input(r)[i] = static_cast<T>(word >> 8);
      }
      expected_[i] = folded(op, i);
    }
  }

 private:
  T folded(reduction op, std::size_t i) const {
    T const first = this->input(0)[i];
    T least = first, most = first;
    wide exact_sum = first;
    std::uint64_t sum = static_cast<std::uint64_t>(first), product = sum;
    for (int r = 1; r < this->ranks(); ++r) {
      T const x = this->input(r)[i];
      least = std::min(least, x);
      most = std::max(most, x);
      exact_sum += x;
      sum += static_cast<std::uint64_t>(x);
      product *= static_cast<std::uint64_t>(x);
    }
    switch (op) {
      case reduction::sum: return static_cast<T>(sum);
      case reduction::prod: return static_cast<T>(product);
      case reduction::min: return least;
      case reduction::max: return most;
      case reduction::avg: return static_cast<T>(exact_sum / this->ranks());
      case reduction::mulsum: return static_cast<T>(sum * mulsum_factor);
    }
    return first;
  }

  std::size_t wrong_sums(T const* got, std::size_t count, std::size_t entry) const override {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) wrong += got[i] != expected_[entry + i] ? 1 : 0;
    return wrong;
  }

  std::vector<T> expected_;
};

template <class T>
class float_pattern final : public table_pattern<T> {
  using format = float_format<T>;

 public:
  float_pattern(reduction op, int ranks) : table_pattern<T>(ranks), expected_(period), tolerance_(period) {
    for (std::size_t i = 0; i < period; ++i) {
      for (int r = 0; r < ranks; ++r) this->input(r)[i] = rounded(value(op, r, i));
      expect(op, i);
    }
  }

 private:
  static T rounded(double x) {
    if constexpr (std::is_same_v<T, double>)
      return x;
    else
      return static_cast<T>(static_cast<float>(x));
  }

  static double as_double(T x) {
    if constexpr (std::is_same_v<T, double>)
      return x;
    else
      return static_cast<double>(static_cast<float>(x));
  }

  static double ulp(double x) {
    int const exponent = x == 0 ? format::min_exponent : std::max(std::ilogb(x), format::min_exponent);
    return std::ldexp(1.0, exponent - (format::digits - 1));
  }

  double value(reduction op, int rank, std::size_t i) const {
    auto const mine = random_fraction(static_cast<std::uint64_t>(rank), i);
    bool const exact = i % 2 == 0;
    switch (op) {
      case reduction::min:
      case reduction::max: return 4 * mine - 2;
      case reduction::prod: return exact ? factor(rank, i) : 0.75 + mine / 2;
      default: return exact ? share(rank, i) : 0.5 + mine;
    }
  }

  /// This rank's bits of the significand that all ranks together make up.
  double share(int rank, std::size_t i) const {
    constexpr std::uint64_t dealer = 1u << 20, sign = 1u << 21;
    double sum = 0;
    for (int bit = 0; bit < format::digits; ++bit) {
      auto const word = random_word(dealer + static_cast<std::uint64_t>(bit), i);
      auto const owner = static_cast<int>((word >> 1) % static_cast<std::uint64_t>(this->ranks()));
      if (owner == rank && (word & 1) != 0) sum += std::ldexp(1.0, bit + 1 - format::digits);
    }
    return (random_word(sign, i) & 1) != 0 ? -sum : sum;
  }

  /// One rank holds a full significand, one 2, one 1/2, the others 1 or -1: exact in any order.
  double factor(int rank, std::size_t i) const {
    constexpr std::uint64_t dealer = 1u << 20;
    auto const p = static_cast<std::uint64_t>(this->ranks());
    auto const place = (static_cast<std::uint64_t>(rank) + random_word(dealer, i)) % p;
    auto const mine = random_word(static_cast<std::uint64_t>(rank), i);
    if (place == 0)
      return 1 + std::floor(std::ldexp(1.0, format::digits - 1) * static_cast<double>(mine >> 11) * 0x1p-53) *
                     std::ldexp(1.0, 1 - format::digits);
    if (place == 1) return 2;
    if (place == 2) return 0.5;
    return (mine & 1) != 0 ? -1 : 1;
  }

  void expect(reduction op, std::size_t i) {
    auto const p = this->ranks();
    long double sum = 0, product = 1;
    double least = as_double(this->input(0)[i]), most = least;
    for (int r = 0; r < p; ++r) {
      double const x = as_double(this->input(r)[i]);
      sum += x;
      product *= x;
      least = std::min(least, x);
      most = std::max(most, x);
    }
    bool const exact = i % 2 == 0;
    auto const roundings = [&](double largest) { return exact ? 0 : p / 2.0 * ulp(largest * (1 + ulp(1))); };
    auto const total = static_cast<double>(sum);
    switch (op) {
      case reduction::min: expected_[i] = least; return;
      case reduction::max: expected_[i] = most; return;
      case reduction::prod:
        expected_[i] = static_cast<double>(product);
        tolerance_[i] = exact ? 0 : p * ulp(expected_[i] * (1 + ulp(1)));
        return;
      case reduction::avg:
        expected_[i] = static_cast<double>(sum / p);
        tolerance_[i] = roundings(total) / p + ulp(expected_[i]);
        return;
      case reduction::mulsum:
        expected_[i] = mulsum_factor * total;
        tolerance_[i] = roundings(expected_[i]);
        return;
      case reduction::sum:
        expected_[i] = total;
        tolerance_[i] = roundings(total);
        return;
    }
  }

  std::size_t wrong_sums(T const* got, std::size_t count, std::size_t entry) const override {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      bool const right = std::abs(as_double(got[i]) - expected_[entry + i]) <= tolerance_[entry + i];  // false for NaN
      wrong += right ? 0 : 1;
    }
    return wrong;
  }

  std::vector<double> expected_, tolerance_;
};

}  // namespace

std::unique_ptr<pattern const> make_pattern(datatype type, reduction op, int ranks) {
  return with_type(type, [&]<class T>(std::type_identity<T>) -> std::unique_ptr<pattern const> {
    if constexpr (std::is_integral_v<T>)
      return std::make_unique<integer_pattern<T>>(op, ranks);
    else
      return std::make_unique<float_pattern<T>>(op, ranks);
  });
}

std::uint64_t hash_bytes(std::span<std::byte const> bytes) noexcept {
  constexpr std::uint64_t prime = 0x100000001b3, other_prime = 0x9e3779b97f4a7c15;
  std::array<std::uint64_t, 8> lanes{1, 2, 3, 4, 5, 6, 7, 8};
  std::array<std::uint64_t, 8> block;
  std::size_t at = 0;
  for (; at + sizeof block <= bytes.size(); at += sizeof block) {
    std::memcpy(block.data(), bytes.data() + at, sizeof block);
    for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] = (lanes[i] ^ block[i]) * other_prime;
  }
  std::uint64_t hash = 0xcbf29ce484222325 ^ bytes.size();
  for (; at < bytes.size(); ++at) hash = (hash ^ std::to_integer<std::uint64_t>(bytes[at])) * prime;
  for (auto const lane : lanes) {
    hash = (hash ^ (lane ^ (lane >> 29))) * other_prime;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace rondo::bench
