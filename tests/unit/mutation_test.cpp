#include "collective_kinds.hpp"
#include "schedule_families.hpp"
#include "schedule_tools.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace {

using namespace rondo;
using namespace schedule_tools;

/// Runs a schedule on numbers, and knows nothing of the verifier: messages are looked up by their ends, sums are
/// integers, a value that completes is multiplied by 3 as `avg` would divide it, a place that is not kept holds rubbish
/// once it was sent. So a right answer needs every contribution once and every completion once.
class simulation {
 public:
  using word = std::uint64_t;

  template <schedule S>
  static bool right(kind what, S const& s, rank_t root) {
    simulation world(what, s.ranks(), s.chunks(), root);
    return world.play(s) && world.right();
  }

 private:
  simulation(kind what, int ranks, int chunks, rank_t root)
      : what_(what), ranks_(ranks), chunks_(chunks), root_(root),
        buffers_(index(ranks), std::vector<word>(index(chunks))),
        knows_(index(ranks), std::vector<bool>(index(ranks))) {
    for (rank_t r = 0; r < ranks; ++r) {
      knows_[index(r)][index(r)] = true;
      for (int c = 0; c < chunks; ++c) buffers_[index(r)][index(c)] = begins(r, c) ? number(r, c) : rubbish();
    }
  }

  static std::size_t index(int x) { return static_cast<std::size_t>(x); }
  static word number(rank_t r, int c) {
    return word(r + 1) * 1000003 + word(c) * word(c) * 7919 + word(r) * word(r) * 31;
  }
  word rubbish() { return rubbish_ += 0x123456789abcdef1u; }
  int owner(int c) const { return c / (chunks_ / ranks_); }

  bool begins(rank_t r, int c) const {
    switch (what_) {
      case kind::broadcast:
      case kind::scatter: return r == root_;
      case kind::all_gather:
      case kind::gather: return r == owner(c);
      default: return true;
    }
  }

  template <schedule S>
  bool play(S const& s) {
    for (int i = 0; i < s.rounds(); ++i) {
      auto const before = buffers_;
      auto const knew = knows_;
      for (rank_t r = 0; r < ranks_; ++r)
        if (i > 0 && !s.at(r, i - 1).keep) fill(r, s.at(r, i - 1).in);
      for (rank_t r = 0; r < ranks_; ++r) {
        step const mine = s.at(r, i);
        if (mine.from == nobody) continue;
        step const theirs = s.at(mine.from, i);
        if (theirs.to != r || theirs.out.count != mine.in.count) return false;
        for (int j = 0; j < mine.in.count; ++j)
          merge_into(buffers_[index(r)][index((mine.in.first + j) % chunks_)],
                     before[index(mine.from)][index((theirs.out.first + j) % chunks_)], mine);
        for (rank_t q = 0; q < ranks_; ++q)
          if (knew[index(mine.from)][index(q)]) knows_[index(r)][index(q)] = true;
      }
    }
    return true;
  }

  void fill(rank_t r, slice free) {
    for (int j = 0; j < free.count; ++j) buffers_[index(r)][index((free.first + j) % chunks_)] = rubbish();
  }

  static void merge_into(word& mine, word theirs, step const& how) {
    mine = how.how == merge::overwrite ? theirs : mine + theirs;
    if (how.completes) mine *= 3;
  }

  bool right() const {
    for (rank_t r = 0; r < ranks_; ++r) {
      if (what_ == kind::barrier)
        for (bool const known : knows_[index(r)])
          if (!known) return false;
      for (int c = 0; c < chunks_; ++c)
        if (!right(r, c)) return false;
    }
    return true;
  }

  bool right(rank_t r, int c) const {
    word const have = buffers_[index(r)][index(c)];
    word sum = 0;
    for (rank_t q = 0; q < ranks_; ++q) sum += number(q, c);
    if (ranks_ > 1) sum *= 3;
    switch (what_) {
      case kind::all_reduce: return have == sum;
      case kind::reduce: return r != root_ || have == sum;
      case kind::reduce_scatter: return r != owner(c) || have == sum;
      case kind::broadcast: return have == number(root_, c);
      case kind::all_gather: return have == number(owner(c), c);
      case kind::gather: return r != root_ || have == number(owner(c), c);
      case kind::scatter: return r != owner(c) || have == number(root_, c);
      case kind::all_to_all: {
        int const half = chunks_ / 2, size = half / ranks_, from = (c - half) / size;
        if (c < half) return have == number(r, c);
        return from == r || have == number(from, r * size + (c - half) % size);
      }
      case kind::barrier: return true;
    }
    return false;
  }

  kind what_;
  int ranks_, chunks_;
  rank_t root_;
  word rubbish_ = 0xdead;
  std::vector<std::vector<word>> buffers_;
  std::vector<std::vector<bool>> knows_;
};

/// What became of the mutants of one sort.
struct count {
  int made = 0, refused = 0, equivalent = 0;

  count& operator+=(count const& other) {
    made += other.made, refused += other.refused, equivalent += other.equivalent;
    return *this;
  }
};

/// The ways in which a message is spoiled. All but `half` keep law 1, so that only what the message means can betray
/// them.
enum class harm { half, dropped, doubled_fold, doubled_copy, redirected, other_merge, other_completes, other_keep };
constexpr std::array<char const*, 8> harms{"half a message dropped", "message dropped",    "fold doubled",
                                           "copy doubled",           "message redirected", "fold <-> overwrite",
                                           "completes flipped",      "keep flipped"};

class laboratory {
 public:
  template <schedule S>
  void spoil(kind what, S const& s, rank_t root) {
    table const original(s);
    ASSERT_TRUE(verify_as(what, original.view(), root)) << verify_as(what, original.view(), root).describe();
    ASSERT_TRUE(simulation::right(what, original.view(), root)) << "the simulation is right about what is right";
    needless_ += verify_as(what, original.view(), root).needless;
    for (int i = 0; i < original.rounds(); ++i)
      for (rank_t r = 0; r < s.ranks(); ++r)
        if (step const t = s.at(r, i); t.to != nobody) spoil_message(what, original, root, s.ranks(), i, r, t.to);
  }

  count const& of(harm h) const { return counts_[static_cast<std::size_t>(h)]; }

  laboratory& operator+=(laboratory const& other) {
    for (std::size_t h = 0; h < counts_.size(); ++h) counts_[h] += other.counts_[h];
    needless_ += other.needless_;
    return *this;
  }

  /// Messages of the originals that the verifier says may be dropped.
  int needless() const { return needless_; }

  count total() const {
    count all;
    for (count const& c : counts_) all += c;
    return all;
  }

 private:
  void spoil_message(kind what, table const& original, rank_t root, int ranks, int i, rank_t from, rank_t to) {
    auto const no_send = [&](step& t) { t.to = nobody, t.out = {}; };
    auto const no_receive = [&](step& t) { t = {t.to, t.out, nobody, {}, merge::overwrite, true, false}; };
    auto const receive_of = [](step& t, step const& like) {
      t.from = like.from, t.in = like.in, t.how = like.how, t.keep = like.keep, t.completes = like.completes;
    };

    table mutant = original;
    no_send(mutant.at(from, i));
    judge(harm::half, what, mutant, root);
    mutant = original;
    no_receive(mutant.at(to, i));
    judge(harm::half, what, mutant, root);
    no_send(mutant.at(from, i));
    judge(harm::dropped, what, mutant, root);

    for (rank_t other = 0; other < ranks; ++other) {
      if (other == from || other == to || mutant.at(other, i).from != nobody) continue;
      table redirected = mutant;
      table source = original;
      redirected.at(from, i).to = other;
      redirected.at(from, i).out = source.at(from, i).out;
      receive_of(redirected.at(other, i), source.at(to, i));
      judge(harm::redirected, what, redirected, root);
    }

    mutant = original;
    step const whole = mutant.at(to, i);
    mutant.insert_round(i + 1);
    mutant.at(from, i + 1).to = to;
    mutant.at(from, i + 1).out = mutant.at(from, i).out;
    receive_of(mutant.at(to, i + 1), whole);
    judge(whole.how == merge::overwrite ? harm::doubled_copy : harm::doubled_fold, what, mutant, root);

    mutant = original;
    step& receiver = mutant.at(to, i);
    receiver.how = whole.how == merge::overwrite ? merge::fold : merge::overwrite;
    judge(harm::other_merge, what, mutant, root);
    receiver = whole;
    receiver.completes = !whole.completes;
    judge(harm::other_completes, what, mutant, root);
    receiver = whole;
    receiver.keep = !whole.keep;
    judge(harm::other_keep, what, mutant, root);
  }

  void judge(harm h, kind what, table const& mutant, rank_t root) {
    count& c = counts_[static_cast<std::size_t>(h)];
    ++c.made;
    if (!verify_as(what, mutant.view(), root)) {
      ++c.refused;
    } else {
      EXPECT_TRUE(simulation::right(what, mutant.view(), root))
          << "the verifier lets pass: " << name_of(what) << ", " << harms[static_cast<std::size_t>(h)];
      ++c.equivalent;
    }
  }

  std::array<count, harms.size()> counts_{};
  int needless_ = 0;
};

void report(std::string const& whose, count const& c) {
  std::printf("%-34s mutants: %7d, refused %7d, equivalent %6d\n", whose.c_str(), c.made, c.refused, c.equivalent);
}

/// Mutants of all families' schedules for which `wanted(kind)`.
template <class Wanted>
laboratory spoil_all(Wanted wanted) {
  laboratory all;
  for_each_family([&](std::string const& name, look_at_schedules const& schedules_of) {
    laboratory one;
    for (int const ranks : {2, 3, 4, 5, 7, 8})
      schedules_of(ranks, some_roots(ranks), [&](kind what, schedule_ref const& s, rank_t root) {
        if (!wanted(what)) return;
        SCOPED_TRACE(name + ' ' + name_of(what) + ", " + std::to_string(ranks) + " ranks, root " +
                     std::to_string(root));
        one.spoil(what, s, root);
      });
    all += one;
    if (one.total().made) report(name, one.total());
  });
  for (std::size_t h = 0; h < harms.size(); ++h) report(harms[h], all.of(static_cast<harm>(h)));
  report("total", all.total());
  testing::Test::RecordProperty("mutants", all.total().made);
  testing::Test::RecordProperty("refused", all.total().refused);
  testing::Test::RecordProperty("equivalent", all.total().equivalent);
  return all;
}

void expect_all_refused(laboratory const& all, harm h) {
  EXPECT_GT(all.of(h).made, 0) << harms[static_cast<std::size_t>(h)];
  EXPECT_EQ(all.of(h).refused, all.of(h).made) << harms[static_cast<std::size_t>(h)];
}

TEST(mutation, whatever_moves_data_wrongly_is_refused) {
  laboratory const all = spoil_all([](kind what) { return what != kind::barrier; });
  EXPECT_GT(all.total().made, 10000);
  for (harm const h : {harm::half, harm::doubled_fold, harm::other_completes}) expect_all_refused(all, h);
  // A message whose loss does no harm is one of which the verifier says so, and there is nothing to fold in it either.
  for (harm const h : {harm::dropped, harm::other_merge}) EXPECT_EQ(all.of(h).equivalent, all.needless());
}

/// To hear twice of a rank does no harm in a barrier, so a message may be one too many.
TEST(mutation, barriers_that_let_a_rank_go_early_are_refused) {
  laboratory const all = spoil_all([](kind what) { return what == kind::barrier; });
  expect_all_refused(all, harm::half);
  EXPECT_GT(all.of(harm::dropped).refused, 0);
}

}  // namespace
