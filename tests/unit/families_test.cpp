#include "schedule_families.hpp"

#include <cstdio>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>

namespace {

using namespace rondo;
using namespace schedule_tools;

std::string where(std::string const& name, kind what, int ranks, rank_t root) {
  return name + ' ' + name_of(what) + ", " + std::to_string(ranks) + " ranks, root " + std::to_string(root);
}

/// Whether a family has, for all world sizes so far, what it says of itself.
struct claims {
  bool rank_order_said, uniform_tree_said;
  bool rank_order_seen = true, uniform_tree_seen = true;
};

TEST(families, every_schedule_is_right_up_to_128_ranks) {
  int proofs = 0;
  for_each_family([&](std::string const& name, look_at_schedules const& schedules_of) {
    std::map<kind, claims> said;
    for (int ranks = 1; ranks <= 128; ++ranks)
      schedules_of(ranks, some_roots(ranks), [&](kind what, schedule_ref const& s, rank_t root) {
        ASSERT_EQ(s.ranks(), ranks);
        verdict const v = verify_as(what, s, root);
        ++proofs;
        ASSERT_TRUE(v) << where(name, what, ranks, root) << ": " << v.describe();
        EXPECT_TRUE(v.same_bits) << where(name, what, ranks, root);
        claims& c = said.try_emplace(what, claims{s.keeps_rank_order, s.uniform_tree}).first->second;
        c.rank_order_seen = c.rank_order_seen && v.keeps_rank_order;
        c.uniform_tree_seen = c.uniform_tree_seen && v.uniform_tree && v.canonical_tree;
      });
    for (auto const& [what, c] : said) {
      EXPECT_EQ(c.rank_order_said, c.rank_order_seen) << name << ' ' << name_of(what) << " keeps_rank_order";
      EXPECT_EQ(c.uniform_tree_said, c.uniform_tree_seen) << name << ' ' << name_of(what) << " uniform_tree";
    }
  });
  RecordProperty("proofs", proofs);
  std::printf("proofs: %d\n", proofs);
}

TEST(families, every_root_up_to_32_ranks) {
  for_each_family([](std::string const& name, look_at_schedules const& schedules_of) {
    for (int ranks = 2; ranks <= 32; ++ranks) {
      std::set<rank_t> all;
      for (rank_t r = 0; r < ranks; ++r) all.insert(r);
      schedules_of(ranks, all, [&](kind what, schedule_ref const& s, rank_t root) {
        verdict const v = verify_as(what, s, root);
        EXPECT_TRUE(v) << where(name, what, ranks, root) << ": " << v.describe();
      });
    }
  });
}

TEST(families, segments_overlap_without_deadlock) {
  for_each_family([](std::string const& name, look_at_schedules const& schedules_of) {
    for (int const ranks : {1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 21})
      schedules_of(ranks, {0, ranks / 2}, [&](kind what, schedule_ref const& s, rank_t root) {
        for (int const segments : {1, 2, 4}) {
          verdict const v = verify_overlap(s, segments);
          EXPECT_TRUE(v) << where(name, what, ranks, root) << ": " << v.describe();
        }
      });
  });
}

/// What period() is for: no rank sends more in one period than there are rounds in it.
TEST(families, overlapping_segments_do_not_crowd_a_rank) {
  for_each_family([](std::string const& name, look_at_schedules const& schedules_of) {
    for (int ranks = 1; ranks <= 40; ++ranks)
      schedules_of(ranks, {0, ranks / 2}, [&](kind what, schedule_ref const& s, rank_t root) {
        for (rank_t r = 0; r < ranks; ++r) {
          std::set<int> sends, receives;
          for (int i = 0; i < s.rounds(); ++i) {
            step const t = s.at(r, i);
            EXPECT_TRUE(t.to == nobody || sends.insert(i % s.period()).second)
                << where(name, what, ranks, root) << ", rank " << r << " sends twice in a tick";
            EXPECT_TRUE(t.from == nobody || receives.insert(i % s.period()).second)
                << where(name, what, ranks, root) << ", rank " << r << " receives twice in a tick";
          }
        }
      });
  });
}

TEST(families, no_message_is_needless) {
  for_each_family([](std::string const& name, look_at_schedules const& schedules_of) {
    for (int ranks = 1; ranks <= 40; ++ranks)
      schedules_of(ranks, some_roots(ranks), [&](kind what, schedule_ref const& s, rank_t root) {
        EXPECT_EQ(verify_as(what, s, root).needless, 0) << where(name, what, ranks, root);
      });
  });
}

/// Sizes around a power of two, and a round one.
TEST(families, every_schedule_is_right_at_some_hundred_ranks) {
  for_each_family([](std::string const& name, look_at_schedules const& schedules_of) {
    for (int const ranks : {255, 256, 257, 1000})
      schedules_of(ranks, {0, ranks / 3}, [&](kind what, schedule_ref const& s, rank_t root) {
        verdict const v = verify_as<proof::checksums>(what, s, root);
        EXPECT_TRUE(v) << where(name, what, ranks, root) << ": " << v.describe();
      });
  });
}

/// Those whose work does not grow with the square of the ranks; one ring stands for the others.
TEST(families, some_schedules_at_4096_ranks) {
  int const n = 4096;
  EXPECT_TRUE(verify_all_reduce<proof::checksums>(ring::all_reduce{n / 2}));
  EXPECT_TRUE(verify_all_reduce<proof::checksums>(recursive_halving::all_reduce{n}));
  for (int const ranks : {n - 1, n, n + 1}) {
    EXPECT_TRUE(verify_all_reduce(recursive_doubling::all_reduce{ranks}).canonical_tree);
    EXPECT_TRUE(verify_all_reduce(tree::all_reduce{ranks}).keeps_rank_order);
    EXPECT_TRUE(verify_all_reduce(double_tree::all_reduce{ranks}).keeps_rank_order);
    EXPECT_TRUE(verify_all_reduce(binomial::all_reduce{ranks}).canonical_tree);
    EXPECT_TRUE(verify_barrier(recursive_doubling::barrier{ranks}));
  }
}

}  // namespace
