#pragma once

#include <rondo/detail/expressions.hpp>
#include <rondo/schedule.hpp>
#include <rondo/schedule/verdict.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rondo::inline v0 {

/// How `verify` tells one sum from another.
enum class proof : unsigned char {
  expressions,  ///< as a set of ranks and a tree: a proof, and the tree facts; to about 1,000 ranks
  checksums  ///< as a sum of random 64-bit numbers: wrong with probability 2^-64 a chunk; no tree facts; to thousands
};

}  // namespace rondo::inline v0

namespace rondo::inline v0::detail {

/// What a chunk of a rank's buffer may hold, and what a fold makes of it. `nothing` is a place nobody may read.
template <proof>
class contents;

/// Which chunk it is, wherever it stands now, and which sum of it.
struct labelled_sum {
  int chunk;
  int sum;
  friend constexpr bool operator==(labelled_sum, labelled_sum) = default;
};

template <>
class contents<proof::expressions> {
 public:
  using value = labelled_sum;
  static constexpr value nothing{-1, -1};

  constexpr contents(int ranks, int /*chunks*/) : sums_(ranks) {}

  constexpr value contribution(rank_t r, int c) const { return {c, r}; }

  constexpr flaw fold(value& mine, value theirs, bool mine_first) {
    if (mine.chunk != theirs.chunk) return flaw::mixes_chunks;
    mine.sum = mine_first ? sums_.fold(mine.sum, theirs.sum) : sums_.fold(theirs.sum, mine.sum);
    return mine.sum < 0 ? flaw::counts_twice : flaw::none;
  }

  constexpr bool complete(value v, int /*c*/) { return v.sum >= 0 && sums_.complete(v.sum); }

  constexpr expressions& sums() { return sums_; }

 private:
  expressions sums_;
};

template <>
class contents<proof::checksums> {
 public:
  using value = std::uint64_t;
  static constexpr value nothing = 0;

  constexpr contents(int ranks, int chunks) : chunks_(chunks), total_(static_cast<std::size_t>(chunks), value{0}) {
    for (rank_t r = 0; r < ranks; ++r)
      for (int c = 0; c < chunks; ++c) total_[static_cast<std::size_t>(c)] += contribution(r, c);
  }

  /// splitmix64 of the place: independent for all ranks and chunks, so that a mixture of chunks shows as well.
  constexpr value contribution(rank_t r, int c) const {
    value x = (value(r) * value(chunks_) + value(c) + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }

  constexpr flaw fold(value& mine, value theirs, bool) {
    mine += theirs;
    return flaw::none;
  }

  constexpr bool complete(value v, int c) { return v == total_[static_cast<std::size_t>(c)]; }

 private:
  int chunks_;
  std::vector<value> total_;
};

/// Where the value comes from that a rank wants in the end.
struct origin {
  rank_t rank;
  int chunk;
};
inline constexpr rank_t everybody = -2;  // the sum over all ranks

/// Whether the numbers that `s` gives are possible at all.
template <schedule S>
constexpr bool well_shaped(S const& s, int least_chunks) {
  int const rounds = s.rounds();
  return s.ranks() >= 1 && s.chunks() >= least_chunks && rounds >= 0 && s.period() >= 1 &&
         s.period() <= (rounds > 1 ? rounds : 1);
}

/// Whether two slices of a buffer of `chunks` share none.
constexpr bool disjoint(slice a, slice b, int chunks) {
  int const ahead = b.first >= a.first ? b.first - a.first : b.first - a.first + chunks;
  return a.count == 0 || b.count == 0 || (ahead >= a.count && chunks - ahead >= b.count);
}

/// Laws 1 and 2 for the round `i` of all ranks. `least` is the smallest size of a message: 0 where only its arrival
/// counts.
constexpr verdict check_round(std::vector<step> const& now, int i, int chunks, int least) {
  int const ranks = static_cast<int>(now.size());
  auto const of = [&](rank_t r) -> step const& { return now[static_cast<std::size_t>(r)]; };
  auto const bad_slice = [&](slice x) {
    return x.count < least || x.count > chunks || x.first < 0 || (x.count > 0 && x.first >= chunks);
  };
  for (rank_t r = 0; r < ranks; ++r) {
    step const& t = of(r);
    if (t.to < nobody || t.to >= ranks || t.from < nobody || t.from >= ranks) return {flaw::peer_out_of_range, r, i};
    if (t.to == r || t.from == r) return {flaw::self_message, r, i};
    if (t.to == nobody && t.out != slice{}) return {flaw::idle_not_empty, r, i};
    if (t.from == nobody && (t.in != slice{} || t.how != merge::overwrite || !t.keep || t.completes))
      return {flaw::idle_not_empty, r, i};
    if (t.to != nobody && bad_slice(t.out)) return {flaw::slice_out_of_range, r, i};
    if (t.from != nobody && bad_slice(t.in)) return {flaw::slice_out_of_range, r, i};
    if (t.out != t.in && !disjoint(t.out, t.in, chunks)) return {flaw::slices_overlap, r, i};
  }
  for (rank_t r = 0; r < ranks; ++r) {
    step const& t = of(r);
    if (t.to != nobody && of(t.to).from != r) return {flaw::unmatched_send, r, i};
    if (t.from != nobody && of(t.from).to != r) return {flaw::unmatched_receive, r, i};
    if (t.to != nobody && of(t.to).in.count != t.out.count) return {flaw::counts_differ, r, i};
  }
  return {};
}

/// Plays a schedule on symbols: all ranks, round by round. A round's messages carry the values from before its merges.
template <proof P, schedule S>
class interpreter {
 public:
  using value = typename contents<P>::value;

  constexpr explicit interpreter(S const& s)
      : s_(s), ranks_(s.ranks()), chunks_(s.chunks()), contents_(ranks_, chunks_),
        held_(static_cast<std::size_t>(ranks_) * static_cast<std::size_t>(chunks_), contents<P>::nothing),
        now_(static_cast<std::size_t>(ranks_), step{}), owed_(static_cast<std::size_t>(ranks_), slice{}),
        message_(static_cast<std::size_t>(ranks_), std::size_t{0}) {}

  /// has(rank, chunk): whether the rank begins with a contribution of its own in the chunk;
  /// wants(rank, chunk): the origin of what it must end with, its rank `nobody` where anything will do.
  template <class Has, class Wants>
  constexpr verdict run(Has has, Wants wants) {
    for (rank_t r = 0; r < ranks_; ++r)
      for (int c = 0; c < chunks_; ++c)
        if (has(r, c)) at(r, c) = contents_.contribution(r, c);
    int const rounds = s_.rounds();
    for (int i = 0; i < rounds; ++i) {
      for (rank_t r = 0; r < ranks_; ++r) now_[static_cast<std::size_t>(r)] = s_.at(r, i);
      if (verdict const v = check_round(now_, i, chunks_, 1); !v) return v;
      if (verdict const v = send(i); !v) return v;
      if (verdict const v = receive(i); !v) return v;
    }
    for (rank_t r = 0; r < ranks_; ++r)
      if (owed_[static_cast<std::size_t>(r)].count) return {flaw::not_forwarded, r, rounds - 1};
    verdict found = finish(wants);
    if (found && P == proof::expressions) found.needless = count_needless(wants);
    return found;
  }

 private:
  constexpr value& at(rank_t r, int c) {
    return held_[static_cast<std::size_t>(r) * static_cast<std::size_t>(chunks_) + static_cast<std::size_t>(c)];
  }

  constexpr int next(int c) const { return c + 1 == chunks_ ? 0 : c + 1; }

  constexpr verdict send(int i) {
    wire_.clear();
    for (rank_t r = 0; r < ranks_; ++r) {
      step const& t = now_[static_cast<std::size_t>(r)];
      slice& owed = owed_[static_cast<std::size_t>(r)];
      bool const frees = owed.count != 0;
      if (frees && (t.to == nobody || t.out != owed)) return {flaw::not_forwarded, r, i};
      owed = {};
      message_[static_cast<std::size_t>(r)] = wire_.size();
      for (int j = 0, c = t.out.first; j < t.out.count; ++j, c = next(c)) {
        value& mine = at(r, c);
        if (mine == contents<P>::nothing) return {flaw::reads_nothing, r, i, c};
        wire_.push_back(mine);
        if (frees) mine = contents<P>::nothing;
      }
    }
    return {};
  }

  constexpr verdict receive(int i) {
    for (rank_t r = 0; r < ranks_; ++r) {
      step const& t = now_[static_cast<std::size_t>(r)];
      if (t.from == nobody) continue;
      std::size_t const message = message_[static_cast<std::size_t>(t.from)];
      for (int j = 0, c = t.in.first; j < t.in.count; ++j, c = next(c)) {
        value const theirs = wire_[message + static_cast<std::size_t>(j)];
        value& mine = at(r, c);
        if (t.how == merge::overwrite) {
          mine = theirs;
        } else {
          if (mine == contents<P>::nothing) return {flaw::reads_nothing, r, i, c};
          if (flaw const why = contents_.fold(mine, theirs, t.how == merge::fold); why != flaw::none)
            return {why, r, i, c};
        }
        if (t.completes != (t.how != merge::overwrite && contents_.complete(mine, c)))
          return {flaw::completes_wrongly, r, i, c};
      }
      if (!t.keep) owed_[static_cast<std::size_t>(r)] = t.in;
    }
    return {};
  }

  template <class Wants>
  constexpr verdict finish(Wants wants) {
    std::vector<value> sums;  // of every chunk, the first that some rank has
    bool same = true, ordered = true;
    for (int c = 0; c < chunks_; ++c) {
      value first = contents<P>::nothing;
      for (rank_t r = 0; r < ranks_; ++r) {
        origin const from = wants(r, c);
        if (from.rank == nobody) continue;
        value const v = at(r, c);
        if (from.rank != everybody) {
          if (v != contents_.contribution(from.rank, from.chunk)) return {flaw::incomplete, r, -1, c};
          continue;
        }
        if (!contents_.complete(v, c)) return {flaw::incomplete, r, -1, c};
        if constexpr (P == proof::expressions) {
          if (v.chunk != c) return {flaw::incomplete, r, -1, c};
          if (first == contents<P>::nothing) first = v;
          same = same && contents_.sums().commuted(v.sum) == contents_.sums().commuted(first.sum);
          ordered = ordered && contents_.sums().in_rank_order(v.sum);
        }
      }
      if (first != contents<P>::nothing) sums.push_back(first);
    }
    verdict found{};
    if constexpr (P == proof::expressions) {
      expressions& e = contents_.sums();
      found.same_bits = same;
      found.keeps_rank_order = ordered;
      found.uniform_tree = same;
      found.canonical_tree = same;
      int const balanced = sums.empty() ? 0 : e.commuted(e.canonical());
      for (value const v : sums) {
        found.uniform_tree = found.uniform_tree && e.commuted(v.sum) == e.commuted(sums.front().sum);
        found.canonical_tree = found.canonical_tree && e.commuted(v.sum) == balanced;
      }
    }
    return found;
  }

  /// Goes back from the end and asks of every chunk whether anybody will read it.
  template <class Wants>
  constexpr int count_needless(Wants wants) {
    std::vector<char> asked_for(held_.size(), 0);
    auto const of = [&](rank_t r, int c) -> char& {
      return asked_for[static_cast<std::size_t>(r) * static_cast<std::size_t>(chunks_) + static_cast<std::size_t>(c)];
    };
    for (rank_t r = 0; r < ranks_; ++r)
      for (int c = 0; c < chunks_; ++c) of(r, c) = wants(r, c).rank != nobody;

    int needless = 0;
    std::vector<char> wire;  // of this round's messages: whether the chunk will be read
    for (int i = s_.rounds() - 1; i >= 0; --i) {
      wire.clear();
      for (rank_t r = 0; r < ranks_; ++r) {
        step const t = now_[static_cast<std::size_t>(r)] = s_.at(r, i);
        message_[static_cast<std::size_t>(r)] = wire.size();
        bool needed = t.from == nobody;
        for (int j = 0, c = t.in.first; j < t.in.count; ++j, c = next(c)) {
          wire.push_back(of(r, c));
          needed = needed || of(r, c);
          if (t.how == merge::overwrite) of(r, c) = 0;
        }
        needless += !needed;
      }
      for (rank_t r = 0; r < ranks_; ++r) {
        step const& t = now_[static_cast<std::size_t>(r)];
        for (int j = 0, c = t.out.first; j < t.out.count; ++j, c = next(c))
          if (wire[message_[static_cast<std::size_t>(t.to)] + static_cast<std::size_t>(j)]) of(r, c) = 1;
      }
    }
    return needless;
  }

  S s_;
  int ranks_;
  int chunks_;
  contents<P> contents_;
  std::vector<value> held_;           // ranks x chunks
  std::vector<step> now_;             // this round of every rank
  std::vector<slice> owed_;           // law 4: what the rank must send in this round, since its place is free
  std::vector<value> wire_;           // this round's messages
  std::vector<std::size_t> message_;  // where in wire_ the message of a rank begins
};

}  // namespace rondo::inline v0::detail
