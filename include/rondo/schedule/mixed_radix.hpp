#pragma once

#include <rondo/error.hpp>
#include <rondo/schedule.hpp>
#include <rondo/schedule/arithmetic.hpp>

#include <initializer_list>
#include <string_view>

namespace rondo::inline v0 {

/// n = a * b * c …: halving with a fan-out of a, then b, then c, instead of 2. Between log2 n rounds and n - 1.
///
/// Ranks that differ in one digit exchange directly, most significant digit first, so that every message is one run of
/// chunks and chunk r ends at rank r. Optimal volume for every n; messages of one digit do not wait for each other,
/// which is what a larger radix buys: fewer steps that depend on each other. One digit is the direct exchange, two are
/// the rows and columns of a torus. The owner folds what arrives in cyclic order, so the tree depends on the chunk. Cho
/// et al., BlueConnect: decomposing all-reduce for deep learning on heterogeneous network hierarchy, MLSys 2019.
struct mixed_radix {
  static constexpr std::string_view name = "mixed_radix";

  /// The digits, most significant first.
  struct radices {
    static constexpr int max_digits = 16;

    int digit[max_digits] = {};
    int count = 0;

    /// n as a product of its largest possible factors up to `limit`; a prime beyond the limit is a digit of its own,
    /// and should the digits run out, the last one takes the rest.
    constexpr radices(int n, int limit = 8) noexcept {
      while (n > 1) {
        int const d = count < max_digits - 1 ? factor(n, limit) : n;
        digit[count++] = d;
        n /= d;
      }
    }

    /// The digits as given. Throws invalid_argument if there are too many, or one is below 2.
    static constexpr radices of(std::initializer_list<int> digits) {
      radices result(1);
      for (int const d : digits) {
        if (result.count == max_digits || d < 2) throw invalid_argument("radices must be at most 16 numbers from 2 up");
        result.digit[result.count++] = d;
      }
      return result;
    }

    RONDO_HD constexpr int product() const noexcept {
      int n = 1;
      for (int k = 0; k < count; ++k) n *= digit[k];
      return n;
    }

    RONDO_HD constexpr int rounds() const noexcept {
      int sum = 0;
      for (int k = 0; k < count; ++k) sum += digit[k] - 1;
      return sum;
    }

   private:
    static constexpr int factor(int n, int limit) noexcept {
      for (int d = limit < n ? limit : n; d > 1; --d)
        if (n % d == 0) return d;
      for (int d = limit < 2 ? 2 : limit + 1; d <= n / d; ++d)
        if (n % d == 0) return d;
      return n;
    }
  };

  /// One round less than its value for each digit; (n - 1)/n of the buffer sent by each rank.
  struct reduce_scatter {
    radices digits;

    static constexpr bool keeps_rank_order = false;
    static constexpr bool uniform_tree = false;

    RONDO_HD constexpr int ranks() const noexcept { return digits.product(); }
    RONDO_HD constexpr int chunks() const noexcept { return digits.product(); }
    RONDO_HD constexpr int rounds() const noexcept { return digits.rounds(); }
    RONDO_HD constexpr int period() const noexcept { return rounds() > 0 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      int block = digits.product();  // ranks that agree in the more significant digits
      int const* radix = digits.digit;
      for (; i >= *radix - 1; ++radix) i -= *radix - 1, block /= *radix;
      int const stride = block / *radix;
      int const place = r % block;
      int const first = r - place;
      auto const neighbour = [&](int distance) { return first + detail::wrap(place + distance * stride, block); };
      auto const chunks_of = [&](rank_t rank) { return slice{rank - (rank - first) % stride, stride}; };
      rank_t const to = neighbour(i + 1);
      return {.to = to,
              .out = chunks_of(to),
              .from = neighbour(-(i + 1)),
              .in = chunks_of(r),
              .how = merge::fold,
              .completes = stride == 1 && i == *radix - 2};
    }
  };

  /// reduce_scatter backwards, with the same rounds and volume.
  struct all_gather {
    radices digits;

    RONDO_HD constexpr int ranks() const noexcept { return digits.product(); }
    RONDO_HD constexpr int chunks() const noexcept { return digits.product(); }
    RONDO_HD constexpr int rounds() const noexcept { return digits.rounds(); }
    RONDO_HD constexpr int period() const noexcept { return rounds() > 0 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      return detail::backwards(reduce_scatter{digits}.at(r, rounds() - 1 - i), merge::overwrite);
    }
  };

  /// reduce_scatter, then all_gather: 2(n - 1)/n of the buffer sent by each rank.
  struct all_reduce {
    radices digits;

    static constexpr bool keeps_rank_order = false;
    static constexpr bool uniform_tree = false;

    RONDO_HD constexpr int ranks() const noexcept { return digits.product(); }
    RONDO_HD constexpr int chunks() const noexcept { return digits.product(); }
    RONDO_HD constexpr int rounds() const noexcept { return 2 * digits.rounds(); }
    RONDO_HD constexpr int period() const noexcept { return rounds() > 0 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      int const half = digits.rounds();
      return i < half ? reduce_scatter{digits}.at(r, i) : all_gather{digits}.at(r, i - half);
    }
  };
};

}  // namespace rondo::inline v0
