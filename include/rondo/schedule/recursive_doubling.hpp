#pragma once

#include <rondo/schedule.hpp>
#include <rondo/schedule/arithmetic.hpp>

#include <bit>
#include <string_view>

namespace rondo::inline v0 {

/// Exchange everything with a partner 1, 2, 4, … ranks away: fewest rounds, log2 n times the volume, for small buffers.
///
/// The summation tree is the canonical one for every n. Blocks of 2^k neighbours hold their sum after k rounds. Only
/// the last block may be incomplete; when it joins its complete neighbour, a rank without a counterpart stays behind,
/// and so does one whose sum nobody will need. Those who never stay behind are the ranks whose bits are a subset of the
/// bits of n - 1, all of them if n is a power of two. They hold the total after ceil(log2 n) rounds, and one further
/// round for each zero bit of n - 1 hands it to those who differ in that bit. For powers of two this is the algorithm
/// in Thakur, Rabenseifner, Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19(1), 2005.
struct recursive_doubling {
  static constexpr std::string_view name = "recursive_doubling";

  /// ceil(log2 n) rounds for powers of two, else up to 2 ceil(log2 n) - 1; the buffer is sent at most once a round.
  struct all_reduce {
    int n;

    static constexpr bool keeps_rank_order = true;
    static constexpr bool uniform_tree = true;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return 1; }
    RONDO_HD constexpr int rounds() const noexcept { return 2 * detail::ceil_log2(n) - std::popcount(mask()); }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept { return exchange(r, i, {0, 1}); }

   private:
    friend recursive_doubling;

    RONDO_HD constexpr unsigned mask() const noexcept { return static_cast<unsigned>(n - 1); }

    RONDO_HD constexpr step exchange(rank_t r, int i, slice all) const noexcept {
      unsigned const self = static_cast<unsigned>(r);
      unsigned const behind = self & ~mask();
      int const levels = detail::ceil_log2(n);
      if (i < levels) {
        unsigned const bit = 1u << i;
        unsigned const other = self ^ bit;
        if ((behind & (bit - 1)) != 0 || other > mask()) return {};
        rank_t const peer = static_cast<rank_t>(other);
        bool const both = (mask() & bit) != 0;
        step s;
        if (both || peer < r) s.to = peer, s.out = all;
        if (both || peer > r) {
          s.from = peer, s.in = all, s.completes = i == levels - 1;
          s.how = peer < r ? merge::fold_front : merge::fold;
        }
        return s;
      }
      unsigned bit = 1;
      for (int zeros = i - levels; (mask() & bit) != 0 || zeros-- > 0;) bit *= 2;
      step s;
      if (behind < bit && (self | bit) <= mask()) s.to = static_cast<rank_t>(self | bit), s.out = all;
      if (behind >= bit && behind < 2 * bit) s.from = static_cast<rank_t>(self ^ bit), s.in = all;
      return s;
    }
  };

  /// all_reduce over n chunks, of which a rank needs only its own: many bytes, but the canonical tree for every n.
  struct reduce_scatter {
    int n;

    static constexpr bool keeps_rank_order = true;
    static constexpr bool uniform_tree = true;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return n; }
    RONDO_HD constexpr int rounds() const noexcept { return all_reduce{n}.rounds(); }
    RONDO_HD constexpr int period() const noexcept { return all_reduce{n}.period(); }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept { return all_reduce{n}.exchange(r, i, {0, n}); }
  };

  /// What a rank holds doubles every round: ceil(log2 n) rounds and (n - 1)/n of the buffer for every n. Bruck et al.,
  /// Efficient algorithms for all-to-all communications in multiport message-passing systems, TPDS 8(11), 1997; without
  /// its final rotation, since slices are cyclic.
  struct all_gather {
    int n;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return n; }
    RONDO_HD constexpr int rounds() const noexcept { return detail::ceil_log2(n); }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      int const held = 1 << i;
      int const moved = held < n - held ? held : n - held;
      rank_t const from = detail::wrap(r + held, n);
      return {.to = detail::wrap(r - held, n), .out = {r, moved}, .from = from, .in = {from, moved}};
    }
  };

  /// Empty messages: ceil(log2 n) rounds, after which everybody has heard from everybody. Hensgen, Finkel, Manber, Two
  /// algorithms for barrier synchronization, IJPP 17(1), 1988.
  struct barrier {
    int n;

    RONDO_HD constexpr int ranks() const noexcept { return n; }
    RONDO_HD constexpr int chunks() const noexcept { return 1; }
    RONDO_HD constexpr int rounds() const noexcept { return detail::ceil_log2(n); }
    RONDO_HD constexpr int period() const noexcept { return n > 1 ? rounds() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      return {.to = detail::wrap(r + (1 << i), n), .from = detail::wrap(r - (1 << i), n)};
    }
  };
};

}  // namespace rondo::inline v0
