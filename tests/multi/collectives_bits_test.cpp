#include "collectives.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>

// What the numbers promise: the same bits on all ranks and in every run; one canonical tree in ordered calls; what
// happens to NaN, zeros, subnormals, and to means at the edge of a format.

namespace {

using namespace collectives_test;

/// Values of every magnitude, whose sum depends on the order of additions.
template <class T>
T rough(rank_t r, std::size_t i) {
  std::uint64_t const x = mixed(i * 8 + static_cast<std::uint64_t>(r));
  return static_cast<T>(std::ldexp(static_cast<float>(x % 4095) - 2047.0F, static_cast<int>(x >> 60) - 21));
}

/// all_reduce on every rank; returns the result of rank 0 after comparing it with those of all others.
template <class T, class Op, class Make>
guarded<T> same_on_all(crew& ranks, std::size_t count, Op const& op, call_options const& how, Make&& make) {
  std::vector<guarded<T>> results(static_cast<std::size_t>(ranks.size()), guarded<T>(count, 1));
  ranks.run([&](comm& c) {
    auto& mine = results[static_cast<std::size_t>(c.rank())];
    mine.fill([&](std::size_t i) { return make(c.rank(), i); });
    all_reduce<T>(c, mine.all(), mine.all(), op, how);
  });
  for (auto const& other : results) {
    EXPECT_TRUE(other.same_bits(results.front()))
        << to_string(how.algorithm) << " differs between ranks of " << ranks.size();
    EXPECT_TRUE(other.intact());
  }
  return results.front();
}

template <class T>
class bits_of : public testing::Test {};
using floats = testing::Types<float, double, float16, bfloat16, float8_e4m3, float8_e5m2>;
struct type_names {
  template <class T>
  static std::string GetName(int) {
    return std::string(type_name<T>());
  }
};
TYPED_TEST_SUITE(bits_of, floats, type_names);

TYPED_TEST(bits_of, sums_and_means_are_the_same_on_all_ranks_and_in_every_run) {
  using T = TypeParam;
  for (int const n : {3, 5}) {
    crew ranks(medium::in_process, n);
    for (algorithm const how : algorithms_for(collective::all_reduce, n))
      for (std::size_t const count : {std::size_t{31}, std::size_t{40009} / sizeof(T)}) {
        auto const total = same_on_all<T>(ranks, count, sum, {.algorithm = how}, rough<T>);
        auto const again = same_on_all<T>(ranks, count, sum, {.algorithm = how}, rough<T>);
        EXPECT_TRUE(total.same_bits(again)) << to_string(how) << " differs from run to run";
        same_on_all<T>(ranks, count, avg, {.algorithm = how}, rough<T>);
      }
  }
}

/// Payloads and signs of NaN are bits as well: which of two NaN a sum keeps must not depend on who adds.
TYPED_TEST(bits_of, sums_of_different_nan_are_the_same_on_all_ranks) {
  using T = TypeParam;
  auto const nan_of = [](rank_t r, std::size_t i) {
    constexpr T quiet = std::numeric_limits<T>::quiet_NaN();
    T value = quiet;
    auto* const bytes = reinterpret_cast<unsigned char*>(&value);
    if (sizeof(T) > 1) bytes[0] = static_cast<unsigned char>(bytes[0] | (r + 1));
    if ((static_cast<std::size_t>(r) + i) % 2 != 0) bytes[sizeof(T) - 1] |= 0x80;
    return i % 3 == 0 ? static_cast<T>(static_cast<float>(r)) : value;
  };
  for (int const n : {2, 5}) {
    crew ranks(medium::in_process, n);
    for (algorithm const how : algorithms_for(collective::all_reduce, n)) {
      auto const total = same_on_all<T>(ranks, 1003, sum, {.algorithm = how}, nan_of);
      for (std::size_t i = 0; i < 1003; ++i)
        ASSERT_EQ(std::isnan(static_cast<double>(total[i])), i % 3 != 0) << to_string(how) << ", element " << i;
      same_on_all<T>(ranks, 1003, prod, {.algorithm = how}, nan_of);
      same_on_all<T>(ranks, 1003, avg, {.algorithm = how}, nan_of);
    }
  }
}

TYPED_TEST(bits_of, infinities_of_both_signs_are_the_same_on_all_ranks) {
  using T = TypeParam;
  auto const make = [](rank_t r, std::size_t i) {
    return static_cast<T>((static_cast<std::size_t>(r) + i) % 2 == 0 ? std::numeric_limits<float>::infinity()
                                                                     : -std::numeric_limits<float>::infinity());
  };
  for (int const n : {2, 3, 4}) {
    crew ranks(medium::in_process, n);
    for (algorithm const how : algorithms_for(collective::all_reduce, n)) {
      auto const total = same_on_all<T>(ranks, 77, sum, {.algorithm = how}, make);
      EXPECT_TRUE(std::isnan(static_cast<double>(total[0])));
    }
  }
}

/// T(level, b) = T(level - 1, 2b) + T(level - 1, 2b + 1), without blocks that no rank belongs to.
template <class T, class Wide = T>
Wide canonical(int n, std::size_t i, int level, int block) {
  if (level == 0) return static_cast<Wide>(rough<T>(block, i));
  int const left = 2 * block, right = 2 * block + 1;
  Wide const a = canonical<T, Wide>(n, i, level - 1, left);
  if (right << (level - 1) >= n) return a;
  Wide const b = canonical<T, Wide>(n, i, level - 1, right);
  return static_cast<Wide>(static_cast<accumulator_t<Wide>>(a) + static_cast<accumulator_t<Wide>>(b));
}
int levels(int n) {
  int level = 0;
  while (1 << level < n) ++level;
  return level;
}

TYPED_TEST(bits_of, ordered_sums_are_those_of_the_canonical_tree) {
  using T = TypeParam;
  for (int const n : {1, 2, 3, 4, 5, 6, 7, 8})
    on_ranks(medium::in_process, n, [&](comm& c) {
      for (algorithm const how : {algorithm::automatic, algorithm::recursive_doubling, algorithm::binomial,
                                  algorithm::ordered_halving, algorithm::direct}) {
        if (!c.offers(how, collective::all_reduce)) continue;
        for (std::size_t const count : {1U, 7U, 1001U, 30011U}) {
          guarded<T> data(count);
          data.fill([&](std::size_t i) { return rough<T>(c.rank(), i); });
          all_reduce<T>(c, data.all(), data.all(), sum, {.ordered = true, .algorithm = how});
          EXPECT_EQ(data.wrong([&](std::size_t i) { return canonical<T>(n, i, levels(n), 0); }), "")
              << to_string(how) << " on rank " << c.rank() << " of " << n << ", count " << count;
        }
      }
      for (algorithm const how : {algorithm::automatic, algorithm::recursive_doubling, algorithm::ordered_halving}) {
        if (!supports(how, collective::reduce_scatter, n)) continue;
        std::size_t const count = 2003, offset = static_cast<std::size_t>(c.rank()) * count;
        guarded<T> in(static_cast<std::size_t>(n) * count), out(count);
        in.fill([&](std::size_t i) { return rough<T>(c.rank(), i); });
        reduce_scatter<T>(c, in.all(), out.all(), {}, sum, {.ordered = true, .algorithm = how});
        EXPECT_EQ(out.wrong([&](std::size_t i) { return canonical<T>(n, offset + i, levels(n), 0); }), "")
            << to_string(how) << " reduce_scatter on rank " << c.rank() << " of " << n;
      }
      for (rank_t root = 0; root < n; ++root) {
        guarded<T> in(1009), out(1009);
        in.fill([&](std::size_t i) { return rough<T>(c.rank(), i); });
        reduce<T>(c, in.all(), out.all(), sum, root, {.ordered = true});
        if (c.rank() == root) {
          EXPECT_EQ(out.wrong([&](std::size_t i) { return canonical<T>(n, i, levels(n), 0); }), "")
              << "reduce to " << root << " of " << n;
        }
      }
    });
}

/// Means are summed in float where T is narrow, and divided and rounded once.
TYPED_TEST(bits_of, ordered_means_are_those_of_the_canonical_tree) {
  using T = TypeParam;
  using wide = mean_accumulator_t<T>;
  for (int const n : {3, 4, 7})
    on_ranks(medium::in_process, n, [&](comm& c) {
      for (algorithm const how :
           {algorithm::recursive_doubling, algorithm::binomial, algorithm::ordered_halving, algorithm::direct}) {
        if (!c.offers(how, collective::all_reduce)) continue;
        guarded<T> data(3001);
        data.fill([&](std::size_t i) { return rough<T>(c.rank(), i); });
        all_reduce<T>(c, data.all(), data.all(), avg, {.ordered = true, .algorithm = how});
        EXPECT_EQ(data.wrong([&](std::size_t i) {
          return static_cast<T>(canonical<T, wide>(n, i, levels(n), 0) / static_cast<wide>(n));
        }),
                  "")
            << to_string(how) << " on rank " << c.rank() << " of " << n;
      }
    });
}

/// An element has the same bits wherever it lies in whatever buffer, and whatever carries it.
TEST(ordered, sums_do_not_depend_on_count_place_algorithm_or_transport) {
  int const n = 5;
  std::map<std::size_t, float> known;
  std::mutex mutex;
  for (medium const where : media)
    on_ranks(where, n,
             [&](comm& c) {
               for (algorithm const how : {algorithm::automatic, algorithm::recursive_doubling, algorithm::binomial})
                 for (std::size_t const count : {1U, 100U, 5001U, 90001U})
                   for (std::size_t const from : {0U, 13U}) {
                     guarded<float> data(count, from % 3);
                     data.fill([&](std::size_t i) { return rough<float>(c.rank(), from + i); });
                     all_reduce<float>(c, data.all(), data.all(), sum, {.algorithm = how});
                     std::scoped_lock const lock(mutex);
                     std::size_t differ = 0;
                     for (std::size_t i = 0; i < count; ++i)
                       differ += known.try_emplace(from + i, data[i]).first->second != data[i];
                     EXPECT_EQ(differ, 0U) << name_of(where) << " " << to_string(how) << " count " << count;
                   }
             },
             {.deadline = std::chrono::seconds(60), .ordered = true});
}

TEST(ordered, is_refused_by_algorithms_that_cannot_keep_it) {
  for (int const n : {3, 4})
    on_ranks(medium::in_process, n, [&](comm& c) {
      int refused = 0;
      for (algorithm const how : algorithms_for(collective::all_reduce, n)) {
        using enum algorithm;
        if (how == recursive_doubling || how == binomial || how == ordered_halving || how == direct) continue;
        std::vector<float> data(10, 1.0F);
        try {
          all_reduce<float>(c, data, data, sum, {.ordered = true, .algorithm = how});
          ADD_FAILURE() << to_string(how) << " went on";
        } catch (invalid_argument const& e) {
          ++refused;
          std::string_view const said = e.what();
          EXPECT_NE(said.find(to_string(how)), said.npos) << said;
          EXPECT_NE(said.find("recursive_doubling"), said.npos) << said;
        }
        EXPECT_EQ(data, std::vector<float>(10, 1.0F));
        all_reduce<float>(c, data, data, sum, {.ordered = true});
        EXPECT_EQ(data, std::vector<float>(10, static_cast<float>(n)));
      }
      EXPECT_GE(refused, 6);
    });
}

TEST(means, of_large_float16_do_not_overflow) {
  for (int const n : {2, 3, 8}) {
    crew ranks(medium::in_process, n);
    for (algorithm const how : algorithms_for(collective::all_reduce, n)) {
      auto const large = [](rank_t, std::size_t i) { return static_cast<float16>(i % 2 == 0 ? 65504.0F : -60000.0F); };
      auto const mean = same_on_all<float16>(ranks, 99, avg, {.algorithm = how}, large);
      for (std::size_t i = 0; i < 99; ++i) ASSERT_EQ(static_cast<float>(mean[i]), static_cast<float>(large(0, i)));
    }
  }
}

TYPED_TEST(bits_of, means_of_equal_subnormals_are_what_they_were) {
  using T = TypeParam;
  auto const tiny = [](rank_t, std::size_t i) {
    T value{};
    reinterpret_cast<unsigned char&>(value) = static_cast<unsigned char>(1 + i % 3);  // x86-64 and AArch64: low byte
    return value;
  };
  for (int const n : {3, 5}) {
    crew ranks(medium::in_process, n);
    for (algorithm const how : algorithms_for(collective::all_reduce, n)) {
      auto const mean = same_on_all<T>(ranks, 30, avg, {.algorithm = how}, tiny);
      EXPECT_EQ(mean.wrong([&](std::size_t i) { return tiny(0, i); }), "") << to_string(how) << " on " << n;
    }
  }
}

TYPED_TEST(bits_of, subnormals_survive_sums) {
  using T = TypeParam;
  T const least = std::numeric_limits<T>::denorm_min();
  for (int const n : {2, 3}) {
    crew ranks(medium::in_process, n);
    for (algorithm const how : algorithms_for(collective::all_reduce, n)) {
      auto const total = same_on_all<T>(ranks, 30, sum, {.algorithm = how}, [&](rank_t, std::size_t) { return least; });
      for (std::size_t i = 0; i < 30; ++i)
        ASSERT_EQ(static_cast<double>(total[i]), n * static_cast<double>(least)) << to_string(how);
    }
  }
}

template <class T>
class means_of : public testing::Test {};
using integers = testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
                                std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(means_of, integers, type_names);

/// Sums leave the range of T by far; means never do.
TYPED_TEST(means_of, integers_do_not_wrap_and_truncate_toward_zero) {
  using T = TypeParam;
  using limits = std::numeric_limits<T>;
  auto const edge = [](rank_t r, std::size_t i) {
    switch (i % 5) {
      case 0: return limits::max();
      case 1: return limits::min();
      case 2: return static_cast<T>(limits::max() - static_cast<T>(r));
      case 3: return static_cast<T>(r == 0 ? -1 : 0);
      default: return static_cast<T>(mixed(i + static_cast<std::size_t>(r)));
    }
  };
  for (int const n : {3, 5}) {
    crew ranks(medium::in_process, n);
    for (algorithm const how : algorithms_for(collective::all_reduce, n)) {
      auto const mean = same_on_all<T>(ranks, 101, avg, {.algorithm = how}, edge);
      EXPECT_EQ(mean.wrong([&](std::size_t i) {
        __extension__ __int128 total = 0;
        for (rank_t r = 0; r < n; ++r) total += edge(r, i);
        return static_cast<T>(total / n);
      }),
                "")
          << to_string(how) << " on " << n;
    }
  }
}

TYPED_TEST(bits_of, nan_wins_min_and_max_wherever_it_is) {
  using T = TypeParam;
  T const nan = std::numeric_limits<T>::quiet_NaN();
  for (int const n : {1, 2, 5}) {
    crew ranks(medium::in_process, n);
    for (algorithm const how : algorithms_for(collective::all_reduce, n)) {
      // Element i has its NaN on rank i % (n + 1), so every (n + 1)th has none.
      auto const make = [&](rank_t r, std::size_t i) {
        return static_cast<std::size_t>(r) == i % (static_cast<std::size_t>(n) + 1) ? nan : rough<T>(r, i);
      };
      auto const check = [&](auto const& op, auto pick) {
        auto const result = same_on_all<T>(ranks, 203, op, {.algorithm = how}, make);
        for (std::size_t i = 0; i < 203; ++i) {
          if (i % (static_cast<std::size_t>(n) + 1) != static_cast<std::size_t>(n)) {
            ASSERT_TRUE(std::isnan(static_cast<double>(result[i])))
                << to_string(how) << " on " << n << ", element " << i;
            continue;
          }
          double best = static_cast<double>(rough<T>(0, i));
          for (rank_t r = 1; r < n; ++r) best = pick(best, static_cast<double>(rough<T>(r, i)));
          ASSERT_EQ(static_cast<double>(result[i]), best) << to_string(how) << " on " << n << ", element " << i;
        }
      };
      check(min, [](double a, double b) { return b < a ? b : a; });
      check(max, [](double a, double b) { return a < b ? b : a; });
    }
  }
}

TYPED_TEST(bits_of, negative_zero_is_less_than_positive_zero) {
  using T = TypeParam;
  for (int const n : {2, 5}) {
    crew ranks(medium::in_process, n);
    for (algorithm const how : algorithms_for(collective::all_reduce, n)) {
      auto const zeros = [&](bool least) {
        return [n, least](rank_t r, std::size_t i) {
          bool const odd_one_out = static_cast<std::size_t>(r) == i % static_cast<std::size_t>(n);
          return static_cast<T>(odd_one_out == least ? -0.0F : 0.0F);
        };
      };
      auto const low = same_on_all<T>(ranks, 50, min, {.algorithm = how}, zeros(true));
      auto const high = same_on_all<T>(ranks, 50, max, {.algorithm = how}, zeros(false));
      for (std::size_t i = 0; i < 50; ++i) {
        ASSERT_TRUE(std::signbit(static_cast<double>(low[i]))) << to_string(how) << ", element " << i;
        ASSERT_FALSE(std::signbit(static_cast<double>(high[i]))) << to_string(how) << ", element " << i;
      }
    }
  }
}

}  // namespace
