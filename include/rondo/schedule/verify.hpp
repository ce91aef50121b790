#pragma once

#include <rondo/detail/interpreter.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

/// Proofs that a schedule does what a collective promises and keeps the laws of <rondo/schedule.hpp>, by playing all
/// ranks on symbols. Every function here is pure and works in constant expressions:
///
///     static_assert(verify_all_reduce(ring::all_reduce{5}));
///     verdict const v = verify_all_reduce<proof::checksums>(s);   // thousands of ranks
///     if (!v) std::puts(v.describe().c_str());
///
/// Time O(rounds * ranks + chunks moved), memory O(ranks * chunks). A `root` out of range is flaw::bad_shape.
///
/// Where ranks own blocks (reduce_scatter, all_gather, gather, scatter), chunks() is a multiple of ranks()
/// and block q is the q-th run of chunks() / ranks() of them.
///
/// Method: symbolic execution. Every fold joins disjoint sets of contributors, and the sets are complete at the end, so
/// every contribution counts exactly once; hash-consed trees tell which bits are the same.
namespace rondo::inline v0 {

namespace detail {

/// Runs `s` for a collective over blocks: has(rank, owner of a chunk), wants(rank, chunk, its owner).
template <proof P, schedule S, class Has, class Wants>
constexpr verdict verify_blocks(S const& s, Has has, Wants wants) {
  if (!well_shaped(s, 1) || s.chunks() % s.ranks()) return {flaw::bad_shape};
  int const each = s.chunks() / s.ranks();
  return interpreter<P, S>(s).run([=](rank_t r, int c) { return has(r, c / each); },
                                  [=](rank_t r, int c) { return wants(r, c, c / each); });
}

template <proof P, schedule S, class Has, class Wants>
constexpr verdict verify_whole(S const& s, Has has, Wants wants) {
  if (!well_shaped(s, 1)) return {flaw::bad_shape};
  return interpreter<P, S>(s).run(has, wants);
}

}  // namespace detail

/// Every rank ends with the sum of all contributions in every chunk.
template <proof P = proof::expressions, schedule S>
constexpr verdict verify_all_reduce(S const& s) {
  return detail::verify_whole<P>(
      s, [](rank_t, int) { return true; },
      [](rank_t, int c) {
        return detail::origin{detail::everybody, c};
      });
}

/// `root` ends with the sum of all contributions in every chunk.
template <proof P = proof::expressions, schedule S>
constexpr verdict verify_reduce(S const& s, rank_t root) {
  if (root < 0 || root >= s.ranks()) return {flaw::bad_shape};
  return detail::verify_whole<P>(
      s, [](rank_t, int) { return true; },
      [root](rank_t r, int c) {
        return detail::origin{r == root ? detail::everybody : nobody, c};
      });
}

/// Every rank ends with what `root` began with.
template <proof P = proof::expressions, schedule S>
constexpr verdict verify_broadcast(S const& s, rank_t root) {
  if (root < 0 || root >= s.ranks()) return {flaw::bad_shape};
  return detail::verify_whole<P>(
      s, [root](rank_t r, int) { return r == root; },
      [root](rank_t, int c) {
        return detail::origin{root, c};
      });
}

/// Rank r ends with the sum of all contributions in its own block.
template <proof P = proof::expressions, schedule S>
constexpr verdict verify_reduce_scatter(S const& s) {
  return detail::verify_blocks<P>(
      s, [](rank_t, int) { return true; },
      [](rank_t r, int c, int owner) {
        return detail::origin{r == owner ? detail::everybody : nobody, c};
      });
}

/// Every rank begins with its own block and ends with everybody's.
template <proof P = proof::expressions, schedule S>
constexpr verdict verify_all_gather(S const& s) {
  return detail::verify_blocks<P>(
      s, [](rank_t r, int owner) { return r == owner; },
      [](rank_t, int c, int owner) {
        return detail::origin{owner, c};
      });
}

/// Every rank begins with its own block; `root` ends with everybody's.
template <proof P = proof::expressions, schedule S>
constexpr verdict verify_gather(S const& s, rank_t root) {
  if (root < 0 || root >= s.ranks()) return {flaw::bad_shape};
  return detail::verify_blocks<P>(
      s, [](rank_t r, int owner) { return r == owner; },
      [root](rank_t r, int c, int owner) {
        return detail::origin{r == root ? owner : nobody, c};
      });
}

/// `root` begins with all blocks; every rank ends with its own.
template <proof P = proof::expressions, schedule S>
constexpr verdict verify_scatter(S const& s, rank_t root) {
  if (root < 0 || root >= s.ranks()) return {flaw::bad_shape};
  return detail::verify_blocks<P>(
      s, [root](rank_t r, int) { return r == root; },
      [root](rank_t r, int c, int owner) {
        return detail::origin{r == owner ? root : nobody, c};
      });
}

/// The first half of the chunks are the blocks to send, one for each rank, and still there in the end; the second half
/// are the blocks received: block q of rank r becomes block r of the second half of q. What a rank has for itself is no
/// business of the schedule.
template <proof P = proof::expressions, schedule S>
constexpr verdict verify_all_to_all(S const& s) {
  if (!detail::well_shaped(s, 1) || s.chunks() % (2 * s.ranks())) return {flaw::bad_shape};
  int const half = s.chunks() / 2, each = half / s.ranks();
  return detail::interpreter<P, S>(s).run([half](rank_t, int c) { return c < half; },
                                          [half, each](rank_t r, int c) {
                                            if (c < half) return detail::origin{r, c};
                                            int const from = (c - half) / each;
                                            return detail::origin{from == r ? nobody : from, r * each + c % each};
                                          });
}

/// No rank ends before it heard, at first or at second hand, that every rank has begun. Messages may be empty.
template <schedule S>
constexpr verdict verify_barrier(S const& s) {
  if (!detail::well_shaped(s, 0)) return {flaw::bad_shape};
  auto const ranks = static_cast<std::size_t>(s.ranks()), words = (ranks + 63) / 64;
  std::vector<std::uint64_t> before, knows(ranks * words, 0);
  for (std::size_t r = 0; r < ranks; ++r) knows[r * words + r / 64] |= std::uint64_t{1} << (r % 64);
  std::vector<step> now(ranks, step{});
  for (int i = 0; i < s.rounds(); ++i) {
    for (std::size_t r = 0; r < ranks; ++r) now[r] = s.at(static_cast<rank_t>(r), i);
    if (verdict const v = detail::check_round(now, i, s.chunks(), 0); !v) return v;
    before = knows;
    for (std::size_t r = 0; r < ranks; ++r)
      if (now[r].from != nobody)
        for (std::size_t w = 0; w < words; ++w)
          knows[r * words + w] |= before[static_cast<std::size_t>(now[r].from) * words + w];
  }
  for (std::size_t r = 0; r < ranks; ++r)
    for (std::size_t q = 0; q < ranks; ++q)
      if (!(knows[r * words + q / 64] >> (q % 64) & 1)) return {flaw::incomplete, static_cast<rank_t>(r)};
  return {flaw::none, nobody, -1, -1, true, true, true, true};
}

/// Law 3, by running it: `segments` copies of a schedule that keeps law 1 follow each other at the distance of
/// period().
///
/// Every rank has one cursor over its sends and one over its receives; both walk the tasks (segment k, round i) in the
/// order of the clock i + k * period(), the older segment first. A rank has one message in flight; a send waits for the
/// earlier receives of its segment that touch its slice, a receive for the earlier sends of its rank. Law 1 alone
/// implies that this ends (the oldest unfinished message can always move); here it is checked and not believed. Time
/// O((segments * rounds)^2 * ranks) at worst: for tests of up to some hundred ranks.
template <schedule S>
constexpr verdict verify_overlap(S const& s, int segments = 3) {
  if (!detail::well_shaped(s, 0) || segments < 1) return {flaw::bad_shape};
  struct task {
    int segment, round;
  };
  std::vector<task> order;
  int const period = s.period(), rounds = s.rounds();
  for (int tick = 0; tick < rounds + (segments - 1) * period; ++tick)
    for (int k = 0; k < segments; ++k)
      if (int const i = tick - k * period; i >= 0 && i < rounds) order.push_back({k, i});

  struct cursors {
    std::size_t send = 0, receive = 0;
    bool in_flight = false;
  };
  std::vector<cursors> ranks(static_cast<std::size_t>(s.ranks()), cursors{});
  auto const work = [&](rank_t r, std::size_t t) { return s.at(r, order[t].round); };

  auto const may_send = [&](rank_t r, cursors const& at, slice out) {
    for (std::size_t u = at.receive; u < at.send; ++u) {
      step const earlier = work(r, u);
      if (order[u].segment == order[at.send].segment && earlier.from != nobody &&
          !detail::disjoint(earlier.in, out, s.chunks()))
        return false;
    }
    return true;
  };

  for (bool moved = true; moved;) {
    moved = false;
    for (rank_t r = 0; r < s.ranks(); ++r) {
      cursors& at = ranks[static_cast<std::size_t>(r)];
      for (; at.send < order.size() && !at.in_flight; ++at.send) {
        step const t = work(r, at.send);
        if (t.to == nobody) continue;
        if (!may_send(r, at, t.out)) break;
        at.in_flight = moved = true;
        break;
      }
      for (; at.receive < order.size() && at.receive <= at.send; ++at.receive, moved = true) {
        step const t = work(r, at.receive);
        if (t.from == nobody) continue;
        cursors& peer = ranks[static_cast<std::size_t>(t.from)];
        if (!peer.in_flight || work(t.from, peer.send).to != r) break;
        if (peer.send != at.receive) return {flaw::out_of_order, r, order[at.receive].round};
        peer.in_flight = false;
        ++peer.send;
      }
    }
  }
  for (rank_t r = 0; r < s.ranks(); ++r)
    if (cursors const& at = ranks[static_cast<std::size_t>(r)]; at.send < order.size() || at.receive < order.size())
      return {flaw::deadlock, r, order[std::min(at.send, at.receive)].round};
  return {flaw::none, nobody, -1, -1, true, true, true, true};
}

}  // namespace rondo::inline v0
