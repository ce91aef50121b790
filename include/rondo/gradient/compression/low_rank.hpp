#pragma once

#include <rondo/collectives/request.hpp>
#include <rondo/config.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace rondo::inline v0 {

/// A tensor of a bucket as a matrix, row by row.
struct matrix_place {
  std::size_t offset, rows, columns;
};

namespace detail {

/// The factors P and Q of all matrices of a bucket, M ~ P Q', and the numbers that are in no matrix.
class low_rank {
 public:
  /// For a bucket of `size` numbers. Matrices that would not shrink are not factored.
  low_rank(std::vector<matrix_place> matrices, std::size_t size, std::size_t rank, std::uint64_t seed) {
    std::sort(matrices.begin(), matrices.end(), [](auto const& a, auto const& b) { return a.offset < b.offset; });
    std::size_t p = 0, q = 0, end = 0;
    for (matrix_place const& m : matrices) {
      collectives::require(m.offset >= end && m.offset <= size && m.rows * m.columns <= size - m.offset, [&] {
        return "a matrix of " + std::to_string(m.rows) + " x " + std::to_string(m.columns) + " from element " +
               std::to_string(m.offset) + " on overlaps another one or exceeds its bucket of " + std::to_string(size) +
               ": give the places of the bucket's tensors";
      });
      if ((m.rows + m.columns) * rank >= m.rows * m.columns) continue;
      if (end != m.offset) plain_.push_back({end, m.offset - end});
      end = m.offset + m.rows * m.columns;
      matrices_.push_back({m, p, q});
      p += m.rows * rank;
      q += m.columns * rank;
    }
    if (end != size) plain_.push_back({end, size - end});
    rank_ = rank;
    p_.resize(p);
    factors_ = q;
    for (auto const& [offset, count] : plain_) q += count;
    q_.resize(q);
    random_.seed(seed);
  }

  /// What travels in the first all_reduce: P.
  std::span<float> left() noexcept { return p_; }
  /// And in the second: Q, and the plain numbers.
  std::span<float> right() noexcept { return q_; }

  /// P = M Q, with Q where the last call ended, or random.
  void multiply(std::span<float const> values) {
    for (placed const& m : matrices_) {
      make_orthogonal(std::span(q_).subspan(m.q, m.columns * rank_), m.columns, true);
      for (std::size_t i = 0; i < m.rows; ++i)
        for (std::size_t k = 0; k < rank_; ++k)
          p_[m.p + k * m.rows + i] =
              dot(values.data() + m.offset + i * m.columns, q_.data() + m.q + k * m.columns, m.columns);
    }
  }

  /// Makes the columns of P orthogonal, and Q = M' P.
  void multiply_back(std::span<float const> values) {
    std::fill(q_.begin(), q_.begin() + static_cast<std::ptrdiff_t>(factors_), 0.0F);
    for (placed const& m : matrices_) {
      make_orthogonal(std::span(p_).subspan(m.p, m.rows * rank_), m.rows, false);
      for (std::size_t i = 0; i < m.rows; ++i)
        for (std::size_t k = 0; k < rank_; ++k)
          add(p_[m.p + k * m.rows + i], values.data() + m.offset + i * m.columns, q_.data() + m.q + k * m.columns,
              m.columns);
    }
    auto to = q_.begin() + static_cast<std::ptrdiff_t>(factors_);
    for (auto const& [offset, count] : plain_) to = std::copy_n(values.data() + offset, count, to);
  }

  /// values = P Q', and the plain numbers.
  void expand(std::span<float> values) const {
    for (placed const& m : matrices_)
      for (std::size_t i = 0; i < m.rows; ++i) {
        float* const row = values.data() + m.offset + i * m.columns;
        std::fill_n(row, m.columns, 0.0F);
        for (std::size_t k = 0; k < rank_; ++k)
          add(p_[m.p + k * m.rows + i], q_.data() + m.q + k * m.columns, row, m.columns);
      }
    auto from = q_.begin() + static_cast<std::ptrdiff_t>(factors_);
    for (auto const& [offset, count] : plain_) {
      std::copy_n(from, count, values.data() + offset);
      from += static_cast<std::ptrdiff_t>(count);
    }
  }

 private:
  struct placed : matrix_place {
    std::size_t p, q;  // where its factors begin, column by column
  };
  struct range {
    std::size_t offset, count;
  };

  /// In lanes, which a compiler may put in a register: it must not reorder a sum by itself.
  static float dot(float const* a, float const* b, std::size_t n) noexcept {
    std::array<float, 16> sums{};
    std::size_t i = 0;
    for (; i + sums.size() <= n; i += sums.size())
      for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += a[i + lane] * b[i + lane];
    float rest = 0;
    for (; i < n; ++i) rest += a[i] * b[i];
    for (float const s : sums) rest += s;
    return rest;
  }

  /// to += factor * from
  static void add(float factor, float const* from, float* to, std::size_t n) noexcept {
    for (std::size_t i = 0; i < n; ++i) to[i] += factor * from[i];
  }

  static double norm(std::span<float const> v) noexcept {
    double sum = 0;
    for (float const x : v) sum += static_cast<double>(x) * static_cast<double>(x);
    return std::sqrt(sum);
  }

  /// Gram and Schmidt, twice where much is cancelled. A column of which only rounding is left becomes zero, or random
  /// if `fill` says that a direction is needed. What is not finite stays so, but for `fill`.
  void make_orthogonal(std::span<float> columns, std::size_t length, bool fill) {
    for (std::size_t k = 0; k < rank_; ++k) {
      auto const v = columns.subspan(k * length, length);
      double const before = norm(v);
      double after = clear_of(columns.first(k * length), v);
      if (after < before / 2) after = clear_of(columns.first(k * length), v);
      if (fill && !(after > before * 1e-6)) {
        for (float& x : v) x = static_cast<float>(static_cast<double>(random_() >> 11) * 0x1p-52 - 1.0);
        after = clear_of(columns.first(k * length), v);
      } else if (after <= before * 1e-6 && std::isfinite(before)) {
        std::fill(v.begin(), v.end(), 0.0F);
        continue;
      }
      for (float& x : v) x = static_cast<float>(static_cast<double>(x) / after);
    }
  }

  /// Takes the parts along `others`, of length 1 or 0 each, out of v; the length of what is left.
  static double clear_of(std::span<float const> others, std::span<float> v) noexcept {
    for (; !others.empty(); others = others.subspan(v.size()))
      add(-dot(others.data(), v.data(), v.size()), others.data(), v.data(), v.size());
    return norm(v);
  }

  std::size_t rank_ = 0, factors_ = 0;  // factors_: numbers of Q
  std::vector<placed> matrices_;
  std::vector<range> plain_;
  std::vector<float> p_, q_;
  std::mt19937_64 random_;
};

}  // namespace detail

}  // namespace rondo::inline v0
