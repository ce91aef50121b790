#include <rondo/run/families.hpp>
#include <rondo/schedule/cost.hpp>
#include <rondo/select.hpp>

#include <bit>
#include <cstddef>
#include <gtest/gtest.h>
#include <string>

// The built-in choice: what the model says at sizes where there is no doubt, and that it never says anything that a
// call would refuse.

namespace {

using namespace rondo;

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;
using enum collective;

constexpr algorithm over_tcp(collective what, std::size_t bytes, int ranks, bool keep_order = false,
                             bool ordered = false) {
  return select({what, bytes, ranks, keep_order, ordered, false, false, link::tcp});
}

static_assert(over_tcp(all_reduce, 8, 2) == algorithm::recursive_doubling);
static_assert(over_tcp(all_reduce, 1 * KiB, 8) == algorithm::recursive_doubling);
static_assert(over_tcp(all_reduce, 64 * MiB, 8) == algorithm::ring);
static_assert(over_tcp(all_reduce, 64 * MiB, 3) == algorithm::ring);
static_assert(over_tcp(all_reduce, 64 * KiB, 64) == algorithm::mixed_radix);
static_assert(over_tcp(all_reduce, 64 * MiB, 8, false, true) == algorithm::ordered_halving);
static_assert(over_tcp(all_reduce, 64 * MiB, 3, false, true) == algorithm::binomial);
static_assert(over_tcp(all_reduce, 64 * MiB, 7, true) == algorithm::double_tree);
static_assert(over_tcp(reduce_scatter, 64 * MiB, 8) == algorithm::ring);
static_assert(over_tcp(reduce_scatter, 64 * MiB, 7, false, true) == algorithm::recursive_doubling);
static_assert(over_tcp(all_gather, 8, 64) == algorithm::recursive_doubling);
static_assert(over_tcp(all_gather, 64 * MiB, 8) == algorithm::ring);
static_assert(over_tcp(broadcast, 8, 8) == algorithm::binomial);
static_assert(over_tcp(broadcast, 64 * MiB, 8) == algorithm::ring);
static_assert(over_tcp(reduce, 64 * MiB, 8) == algorithm::ring);
static_assert(over_tcp(reduce, 8, 8, true) == algorithm::binomial);
static_assert(over_tcp(barrier, 0, 8) == algorithm::recursive_doubling);
static_assert(over_tcp(all_to_all, 1 * MiB, 8) == algorithm::direct);
static_assert(over_tcp(gather, 1 * MiB, 8) == algorithm::direct);

static_assert(select({.collective = all_reduce, .bytes = 8, .ranks = 2, .shared_memory = true}) == algorithm::direct);
static_assert(
    select({.collective = all_reduce, .bytes = MiB * KiB, .ranks = 64, .ordered = true, .shared_memory = true}) ==
    algorithm::direct);
static_assert(link_of("shm") == link::shared_memory && link_of("tcp") == link::tcp && link_of("") == link::other);

constexpr algorithm between_hosts(collective what, std::size_t bytes, int hosts, int on_each, bool ordered = false) {
  return select({.collective = what,
                 .bytes = bytes,
                 .ranks = hosts * on_each,
                 .ordered = ordered,
                 .link = link_of("multi"),
                 .link_inside = link_inside("multi"),
                 .hosts = hosts,
                 .most_on_host = on_each});
}

static_assert(between_hosts(all_reduce, 25 * MiB, 2, 4) == algorithm::hierarchical);
static_assert(between_hosts(all_reduce, 25 * MiB, 2, 2) == algorithm::hierarchical);
static_assert(between_hosts(all_reduce, 1 * MiB, 4, 8) == algorithm::hierarchical);
static_assert(between_hosts(all_reduce, 25 * MiB, 8, 1) == algorithm::ring);
static_assert(between_hosts(all_reduce, 64 * MiB, 2, 4, true) == algorithm::ordered_halving);
static_assert(between_hosts(all_gather, 64 * MiB, 2, 4) == algorithm::ring);

constexpr collective all_collectives[] = {all_reduce, reduce_scatter, all_gather, broadcast, reduce,
                                          all_to_all, gather,         scatter,    barrier};

TEST(select, chooses_nothing_that_a_call_would_refuse) {
  for (auto const kind : {link::shared_memory, link::tcp, link::other})
    for (auto const what : all_collectives)
      for (int ranks = 1; ranks <= 33; ++ranks)
        for (int mode = 0; mode < 4; ++mode)
          for (std::size_t bytes = 0; bytes <= 256 * MiB; bytes = bytes * 16 + 8) {
            situation const s{what, bytes, ranks, (mode & 1) != 0, (mode & 2) != 0, false, ranks % 2 != 0, kind};
            auto const a = select(s);
            ASSERT_TRUE(supports(a, what, ranks)) << to_string(what) << ' ' << ranks << ' ' << bytes << to_string(a);
            ASSERT_TRUE(admits(s, a)) << to_string(what) << ' ' << ranks << ' ' << bytes << to_string(a);
          }
}

TEST(select, chooses_between_hosts_nothing_that_a_call_would_refuse) {
  for (auto const what : all_collectives)
    for (int const hosts : {2, 3, 8})
      for (int const on_each : {1, 2, 5})
        for (std::size_t bytes = 0; bytes <= 256 * MiB; bytes = bytes * 16 + 8)
          ASSERT_TRUE(supports(between_hosts(what, bytes, hosts, on_each), what, hosts * on_each))
              << to_string(what) << ' ' << hosts << ' ' << on_each << ' ' << bytes;
}

TEST(select, counts_what_crosses_between_hosts_apart) {
  situation const s{.collective = all_reduce, .bytes = 64 * MiB, .ranks = 8, .hosts = 2, .most_on_host = 4};
  host_terms const t = host_terms_of(s, s.bytes);
  EXPECT_EQ(t.inside.sent, 2 * 48 * MiB);
  EXPECT_EQ(t.between.sent, 64 * MiB);  // one link for the whole host: twice a half of the buffer
  EXPECT_EQ(t.inside.rounds, 2U);
  EXPECT_EQ(t.between.rounds, 2U);
}

TEST(select, takes_all_sizes_of_a_class_alike) {
  for (int const ranks : {2, 3, 7, 8})
    for (std::size_t bytes = 1; bytes < MiB; bytes = bytes * 5 / 4 + 1)
      EXPECT_EQ(over_tcp(all_reduce, bytes, ranks), over_tcp(all_reduce, size_class(bytes), ranks)) << bytes;
}

TEST(select, saves_messages_where_ranks_take_turns) {
  situation s{.collective = all_reduce, .bytes = 32 * KiB, .ranks = 4, .link = link::tcp};
  EXPECT_EQ(select(s), algorithm::mixed_radix);
  s.turns = true;
  EXPECT_EQ(select(s), algorithm::recursive_doubling);
}

TEST(select, is_the_same_for_huge_buffers_and_worlds) {
  EXPECT_EQ(over_tcp(all_reduce, std::size_t{1} << 40, 8), algorithm::ring);
  EXPECT_NE(over_tcp(all_reduce, 8, 65536), algorithm::ring);
}

/// A family offers exactly what there are terms for, and the schedule says the same about order.
TEST(terms, know_what_the_families_offer) {
  for (auto const what : all_collectives)
    for (auto const& [a, name] : detail::algorithm_names)
      for (int const ranks : {1, 2, 3, 4, 6, 7, 8, 12, 16})
        if (a != algorithm::automatic && a != algorithm::custom && (a != algorithm::direct || what != all_reduce)) {
          EXPECT_EQ(terms_of(a, what, ranks, MiB).offered, supports(a, what, ranks))
              << name << ' ' << to_string(what) << ' ' << ranks;
        }
}

/// Bytes and rounds of the formulas against the schedules played on a clock.
template <collective What>
void compare_with_schedules(std::size_t bytes) {
  for (auto const a : scheduled_algorithms)
    for (int const ranks : {2, 3, 4, 7, 8, 16}) {
      if (!supports(a, What, ranks) || a == algorithm::hierarchical) continue;
      run::with_schedule<What>(a, {ranks, {ranks}}, 0, bytes, [&](auto const& s) {
        auto const clock = cost(s, static_cast<double>(bytes), link_cost{0, 1, 0});
        auto const t = terms_of(a, What, ranks, bytes);
        EXPECT_GE(static_cast<int>(t.rounds + t.more), clock.messages) << to_string(a) << ' ' << ranks;
        EXPECT_LE(static_cast<int>(t.rounds + t.more), s.rounds()) << to_string(a) << ' ' << ranks;
        EXPECT_GE(static_cast<double>(t.sent) * 1.001 + 64, clock.sent) << to_string(a) << ' ' << ranks;
        EXPECT_LE(clock.seconds * 0.4, static_cast<double>(t.sent) + 64) << to_string(a) << ' ' << ranks;
      });
    }
}

TEST(terms, are_those_of_the_schedules) {
  compare_with_schedules<all_reduce>(64 * KiB);
  compare_with_schedules<reduce_scatter>(64 * KiB);
  compare_with_schedules<all_gather>(64 * KiB);
  compare_with_schedules<broadcast>(64 * KiB);
  compare_with_schedules<reduce>(64 * KiB);
}

TEST(terms, grow_with_every_constant_of_the_model) {
  auto const t = terms_of(algorithm::mixed_radix, all_reduce, 8, MiB);
  constexpr link_constants base{1000, 100, 100, 100};
  for (auto const& more : {link_constants{2000, 100, 100, 100}, link_constants{1000, 200, 100, 100},
                           link_constants{1000, 100, 200, 100}, link_constants{1000, 100, 100, 200}})
    EXPECT_GT(predicted(t, more), predicted(t, base));
}

}  // namespace
