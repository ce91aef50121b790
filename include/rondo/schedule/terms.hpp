#pragma once

#include <rondo/algorithm.hpp>
#include <rondo/schedule/arithmetic.hpp>
#include <rondo/schedule/bidirectional_ring.hpp>
#include <rondo/schedule/binomial.hpp>
#include <rondo/schedule/direct.hpp>
#include <rondo/schedule/double_tree.hpp>
#include <rondo/schedule/hierarchical.hpp>
#include <rondo/schedule/mixed_radix.hpp>
#include <rondo/schedule/ordered_halving.hpp>
#include <rondo/schedule/recursive_doubling.hpp>
#include <rondo/schedule/recursive_halving.hpp>
#include <rondo/schedule/ring.hpp>
#include <rondo/schedule/tree.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace rondo::inline v0 {

/// Between whom the bytes of a call go, which decides how much they get into each other's way.
enum class paths : std::uint8_t {
  neighbours,  ///< of a ring, or of a tree
  everybody,   ///< all ranks of a group at once
  pairs        ///< ranks that are ever further apart, one at a time
};

/// What an algorithm asks of the busiest rank, in closed form: enough to predict a time from a few constants, cheap
/// enough for every call. Whole numbers, so that all ranks come to the same result.
///
/// Formulas: Thakur, Rabenseifner, Gropp, IJHPCA 19(1), 2005, and the sources that the algorithms name. `cost` plays a
/// schedule on a clock instead, round by round.
struct terms {
  std::uint64_t rounds = 0;  ///< messages that each wait for the one before
  std::uint64_t more = 0;    ///< messages sent besides, without waiting for anything
  std::uint64_t sent = 0;    ///< bytes
  std::uint64_t folded = 0;  ///< bytes
  rondo::paths paths = rondo::paths::neighbours;
  bool offered = false;     ///< the algorithm does the collective for that many ranks
  bool keeps_order = true;  ///< for operations that do not commute
  bool ordered = true;      ///< every element has the canonical summation tree
};

namespace detail {

/// Bytes of a segment, about, where a call cuts its chunks into segments: long enough to hide what a round costs, short
/// enough for a segment of every rank to stay in the caches.
inline constexpr std::size_t segment_bytes = std::size_t{256} << 10;

/// Bytes of a chunk from which on levels that overlap have segments enough to do so.
inline constexpr std::size_t pipelined_bytes = 2 * segment_bytes;

/// The schedule S takes part, with these terms.
template <class S>
constexpr terms offer(terms t) noexcept {
  t.offered = true;
  if constexpr (requires { S::keeps_rank_order; }) {
    t.keeps_order = S::keeps_rank_order;
    t.ordered = S::uniform_tree;
  }
  return t;
}

/// A schedule that moves `bytes` in segments, which follow each other every period() rounds; `folds` of `moves`
/// messages are folded.
template <class S>
constexpr terms offer_pipelined(S const& s, std::uint64_t bytes, std::uint64_t folds, std::uint64_t moves) noexcept {
  auto const chunks = static_cast<std::uint64_t>(s.chunks());
  std::uint64_t const segments = std::max<std::uint64_t>(1, bytes / (chunks * segment_bytes));
  std::uint64_t const rounds =
      static_cast<std::uint64_t>(s.rounds()) + (segments - 1) * static_cast<std::uint64_t>(s.period());
  std::uint64_t const sent = rounds * (bytes / (chunks * segments));
  return offer<S>({.rounds = rounds, .sent = sent, .folded = sent * folds / moves});
}

/// The numbers that the formulas are made of, for one call.
struct call_size {
  constexpr call_size(int ranks, std::size_t size) noexcept
      : n(ranks), p(static_cast<std::uint64_t>(ranks)), steps(p - 1),
        levels(static_cast<std::uint64_t>(ceil_log2(ranks))), bytes(size), share(bytes - bytes / p),
        spread(ranks > 2 ? paths::everybody : paths::neighbours),
        doubling(ranks > 2 ? paths::pairs : paths::neighbours) {}

  int n;
  std::uint64_t p, steps, levels;
  std::uint64_t bytes;
  std::uint64_t share;            ///< of the buffer that belongs to other ranks
  rondo::paths spread, doubling;  ///< of a direct exchange, and of one in ever larger steps

  /// Everybody talks to everybody of a group of `d` at once.
  constexpr terms digits() const noexcept {
    mixed_radix::radices const r(n);
    auto const depth = static_cast<std::uint64_t>(r.count);
    return {.rounds = depth, .more = static_cast<std::uint64_t>(r.rounds()) - depth, .sent = share, .paths = spread};
  }
  constexpr terms exchange() const noexcept {
    return {.rounds = steps > 0, .more = steps > 0 ? steps - 1 : 0, .sent = share, .paths = spread};
  }
};

/// The reduce-scatter and the all-gather of a half, one after the other.
constexpr terms twice(terms t) noexcept {
  t.rounds *= 2;
  t.more *= 2;
  t.folded = t.sent;
  t.sent *= 2;
  return t;
}

constexpr terms folding(terms t) noexcept {
  t.folded = t.sent;
  return t;
}

constexpr terms all_reduce_terms(algorithm a, call_size const& c) noexcept {
  switch (a) {
    case algorithm::ring: return offer<ring::all_reduce>(twice({.rounds = c.steps, .sent = c.share}));
    case algorithm::bidirectional_ring:
      return offer<bidirectional_ring::all_reduce>(twice({.rounds = c.steps, .sent = c.share}));
    case algorithm::tree: return offer_pipelined(tree::all_reduce{c.n}, c.bytes, 1, 2);
    case algorithm::double_tree: return offer_pipelined(double_tree::all_reduce{c.n}, c.bytes, 1, 2);
    case algorithm::binomial: return offer_pipelined(binomial::all_reduce{c.n}, c.bytes, 1, 2);
    case algorithm::recursive_doubling: {
      auto const rounds = static_cast<std::uint64_t>(recursive_doubling::all_reduce{c.n}.rounds());
      return offer<recursive_doubling::all_reduce>(
          {.rounds = rounds, .sent = rounds * c.bytes, .folded = c.levels * c.bytes, .paths = c.doubling});
    }
    case algorithm::recursive_halving:
      return offer<recursive_halving::all_reduce>(twice({.rounds = c.levels, .sent = c.share, .paths = c.doubling}));
    case algorithm::ordered_halving:
      if (!ordered_halving::valid(c.n)) return {};
      return offer<ordered_halving::all_reduce>(twice({.rounds = c.levels, .sent = c.share, .paths = c.doubling}));
    case algorithm::mixed_radix: return offer<mixed_radix::all_reduce>(twice(c.digits()));
    case algorithm::hierarchical: {  // groups of about sqrt(n), as on one host
      std::uint64_t each = 1;
      while ((each + 1) * (each + 1) <= c.p) ++each;
      std::uint64_t const groups = c.p / each;
      return offer<hierarchical::all_reduce>(twice(
          {.rounds = (each > 1) + groups - 1, .more = each > 1 ? each - 2 : 0, .sent = c.share, .paths = c.doubling}));
    }
    default: return {};
  }
}

constexpr terms reduce_scatter_terms(algorithm a, call_size const& c) noexcept {
  switch (a) {
    case algorithm::ring: return offer<ring::reduce_scatter>(folding({.rounds = c.steps, .sent = c.share}));
    case algorithm::bidirectional_ring:
      return offer<bidirectional_ring::reduce_scatter>(folding({.rounds = c.steps, .sent = c.share}));
    case algorithm::recursive_doubling: {
      auto t = all_reduce_terms(a, c);
      return offer<recursive_doubling::reduce_scatter>(t);
    }
    case algorithm::recursive_halving:
      return offer<recursive_halving::reduce_scatter>(
          folding({.rounds = c.levels, .sent = c.share, .paths = c.doubling}));
    case algorithm::ordered_halving:
      if (!ordered_halving::valid(c.n)) return {};
      return offer<ordered_halving::reduce_scatter>({.rounds = c.levels + (c.p > 2),
                                                     .sent = c.share + (c.p > 2 ? c.bytes / c.p : 0),
                                                     .folded = c.share,
                                                     .paths = c.doubling});
    case algorithm::mixed_radix: return offer<mixed_radix::reduce_scatter>(folding(c.digits()));
    case algorithm::direct: return offer<direct::reduce_scatter>(folding(c.exchange()));
    default: return {};
  }
}

constexpr terms all_gather_terms(algorithm a, call_size const& c) noexcept {
  switch (a) {
    case algorithm::ring: return offer<ring::all_gather>({.rounds = c.steps, .sent = c.share});
    case algorithm::bidirectional_ring:
      return offer<bidirectional_ring::all_gather>({.rounds = c.steps, .sent = c.share});
    case algorithm::recursive_doubling:
    case algorithm::recursive_halving:
      return offer<recursive_halving::all_gather>({.rounds = c.levels, .sent = c.share, .paths = c.doubling});
    case algorithm::mixed_radix: return offer<mixed_radix::all_gather>(c.digits());
    case algorithm::direct: return offer<direct::all_gather>(c.exchange());
    default: return {};
  }
}

}  // namespace detail

/// The terms of a collective by an algorithm, with buffers of `bytes` on `ranks` >= 1 ranks. A root counts as rank 0,
/// the ranks as neighbours on one host. Not `offered`: the algorithm has no schedule for it.
constexpr terms terms_of(algorithm a, collective what, int ranks, std::size_t bytes) noexcept {
  detail::call_size const c(ranks, bytes);
  switch (what) {
    case collective::all_reduce: return detail::all_reduce_terms(a, c);
    case collective::reduce_scatter: return detail::reduce_scatter_terms(a, c);
    case collective::all_gather: return detail::all_gather_terms(a, c);
    case collective::broadcast:
      if (a == algorithm::ring) return detail::offer_pipelined(ring::broadcast{ranks, 0}, bytes, 0, 1);
      if (a == algorithm::tree) return detail::offer_pipelined(tree::broadcast{ranks, 0}, bytes, 0, 1);
      if (a == algorithm::binomial) return detail::offer_pipelined(binomial::broadcast{ranks, 0}, bytes, 0, 1);
      return {};
    case collective::reduce:
      if (a == algorithm::ring) return detail::offer_pipelined(ring::reduce{ranks, 0}, bytes, 1, 1);
      if (a == algorithm::tree) return detail::offer_pipelined(tree::reduce{ranks, 0}, bytes, 1, 1);
      if (a == algorithm::binomial) return detail::offer_pipelined(binomial::reduce{ranks, 0}, bytes, 1, 1);
      return {};
    case collective::barrier:
      if (a != algorithm::recursive_doubling) return {};
      return detail::offer<recursive_doubling::barrier>({.rounds = c.levels});
    case collective::all_to_all:
    case collective::gather:
    case collective::scatter: return a == algorithm::direct ? detail::offer<void>(c.exchange()) : terms{};
    default: return {};
  }
}

}  // namespace rondo::inline v0
