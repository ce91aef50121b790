#include "collectives.hpp"
#include <rondo/schedule/binomial.hpp>
#include <rondo/schedule/ordered_halving.hpp>
#include <rondo/schedule/recursive_doubling.hpp>
#include <rondo/schedule/ring.hpp>
#include <rondo/schedule/tree.hpp>

#include <algorithm>
#include <string_view>

// Operations that do not commute see the contributions in the order of ranks, for every number of ranks and every root;
// algorithms that reorder them refuse.

namespace {

using namespace collectives_test;

affine map_of(rank_t r, std::size_t i) {
  std::uint64_t const x = mixed(i * 8 + static_cast<std::uint64_t>(r));
  return {static_cast<std::uint32_t>(x) | 1, static_cast<std::uint32_t>(x >> 32), 1};
}

affine composed(int n, std::size_t i) {
  affine total = map_of(0, i);
  for (rank_t r = 1; r < n; ++r) total = composition{}(total, map_of(r, i));
  return total;
}

bool keeps_order(algorithm a, collective what) {
  using enum algorithm;
  if (a == direct) return what == collective::all_reduce;
  return a == tree || a == double_tree || a == recursive_doubling || a == binomial || a == ordered_halving;
}

/// Makes the call, or sees it refused with a way out.
template <class Call>
bool accepted(algorithm how, collective what, Call&& call) {
  if (how == algorithm::automatic || keeps_order(how, what)) {
    call();
    return true;
  }
  try {
    call();
    ADD_FAILURE() << to_string(how) << " took an operation that does not commute";
  } catch (invalid_argument const& e) {
    EXPECT_NE(std::string_view(e.what()).find(to_string(how)), std::string_view::npos) << e.what();
    EXPECT_NE(std::string_view(e.what()).find("commutative"), std::string_view::npos) << e.what();
  }
  return false;
}

auto with_automatic(medium where, collective what, int n) {
  auto all = algorithms_for(what, n, where);
  all.push_back(algorithm::automatic);
  return all;
}

class order_of_ranks : public testing::TestWithParam<std::tuple<medium, int>> {
 protected:
  medium where() const { return std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }
};

TEST_P(order_of_ranks, is_kept_by_all_reduce) {
  int const n = ranks();
  on_ranks(where(), n, [&](comm& c) {
    for (algorithm const how : with_automatic(where(), collective::all_reduce, n))
      for (std::size_t const count : {1U, 5U, 257U, 9001U, 40009U})
        for (bool const in_place : {true, false}) {
          guarded<affine> in(count, 1), out(count, 3);
          in.fill([&](std::size_t i) { return map_of(c.rank(), i); });
          if (!accepted(how, collective::all_reduce, [&] {
                all_reduce<affine>(c, in.all(), in_place ? in.all() : out.all(), composition{}, {.algorithm = how});
              }))
            continue;
          EXPECT_EQ((in_place ? in : out).wrong([&](std::size_t i) { return composed(n, i); }), "")
              << to_string(how) << ", count " << count << ", rank " << c.rank();
        }
  });
}

TEST_P(order_of_ranks, is_kept_by_reduce_to_every_root) {
  int const n = ranks();
  on_ranks(where(), n, [&](comm& c) {
    for (algorithm const how : with_automatic(where(), collective::reduce, n))
      for (rank_t root = 0; root < n; ++root)
        for (std::size_t const count : {1U, 300U, 9001U}) {
          guarded<affine> in(count), out(count);
          in.fill([&](std::size_t i) { return map_of(c.rank(), i); });
          if (accepted(how, collective::reduce,
                       [&] { reduce<affine>(c, in.all(), out.all(), composition{}, root, {.algorithm = how}); }) &&
              c.rank() == root) {
            EXPECT_EQ(out.wrong([&](std::size_t i) { return composed(n, i); }), "")
                << to_string(how) << ", count " << count << ", root " << root;
          }
        }
  });
}

TEST_P(order_of_ranks, is_kept_by_reduce_scatter_with_uneven_blocks) {
  int const n = ranks();
  on_ranks(where(), n, [&](comm& c) {
    std::vector<std::size_t> sizes;
    for (std::size_t q = 0; q < static_cast<std::size_t>(n); ++q) sizes.push_back(q % 3 == 1 ? 0 : 1700 * q + 3);
    std::size_t first = 0, total = 0;
    for (std::size_t q = 0; q < sizes.size(); ++q) {
      if (q < static_cast<std::size_t>(c.rank())) first += sizes[q];
      total += sizes[q];
    }
    for (algorithm const how : with_automatic(where(), collective::reduce_scatter, n)) {
      guarded<affine> in(total), out(sizes[static_cast<std::size_t>(c.rank())]);
      in.fill([&](std::size_t i) { return map_of(c.rank(), i); });
      if (accepted(how, collective::reduce_scatter,
                   [&] { reduce_scatter<affine>(c, in.all(), out.all(), sizes, composition{}, {.algorithm = how}); })) {
        EXPECT_EQ(out.wrong([&](std::size_t i) { return composed(n, first + i); }), "")
            << to_string(how) << ", rank " << c.rank();
      }
    }
  });
}

std::string name_of_case(testing::TestParamInfo<std::tuple<medium, int>> const& info) {
  return name_of(std::get<0>(info.param)) + "_" + std::to_string(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(between_threads, order_of_ranks,
                         testing::Combine(testing::Values(medium::in_process), testing::Range(1, 9)), name_of_case);
INSTANTIATE_TEST_SUITE_P(over, order_of_ranks,
                         testing::Combine(testing::Values(medium::shm, medium::tcp), testing::Values(3, 4)),
                         name_of_case);

struct matrix {
  std::int32_t a, b, c, d;
  friend bool operator==(matrix const&, matrix const&) = default;
};

/// A lambda, chosen at compile time: matrix products in the order of ranks.
TEST(lambda, that_multiplies_matrices_keeps_the_order_of_ranks) {
  auto const times = [](matrix const& x, matrix const& y) noexcept {
    return matrix{x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d, x.c * y.a + x.d * y.c, x.c * y.b + x.d * y.d};
  };
  auto const of = [](rank_t r, std::size_t i) {
    auto const digit = [&](unsigned shift) {
      return static_cast<std::int32_t>(mixed(i * 8 + static_cast<std::size_t>(r)) >> shift & 3);
    };
    return matrix{digit(0), digit(2) - 1, digit(4), digit(6)};
  };
  for (int const n : {1, 2, 5, 6, 7})
    on_ranks(medium::in_process, n, [&](comm& c) {
      auto const run = [&](auto&& reduce) {
        std::vector<matrix> data(3001);
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = of(c.rank(), i);
        reduce(data);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < data.size(); ++i) {
          matrix product = of(0, i);
          for (rank_t r = 1; r < n; ++r) product = times(product, of(r, i));
          wrong += !(data[i] == product);
        }
        EXPECT_EQ(wrong, 0U) << "rank " << c.rank() << " of " << n;
      };
      run([&](auto& data) { c.all_reduce<tree>(data, times); });
      run([&](auto& data) { c.all_reduce<recursive_doubling>(data, times); });
      run([&](auto& data) { c.all_reduce<binomial>(data, times); });
      run([&](auto& data) { c.start_all_reduce<tree>(data, times).wait(); });
    });
}

/// Declared to commute, a lambda may go round the ring.
TEST(lambda, that_is_declared_commutative_may_be_reordered) {
  for (int const n : {2, 3, 8})
    on_ranks(medium::in_process, n, [&](comm& c) {
      std::vector<std::uint32_t> data(10007);
      for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<std::uint32_t>(mixed(i + 7919 * static_cast<std::size_t>(c.rank())));
      c.all_reduce<ring>(data,
                         commutative([](std::uint32_t a, std::uint32_t b) noexcept { return (a & b) + (a | b); }));
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < data.size(); ++i) {
        std::uint32_t total = 0;
        for (std::size_t r = 0; r < static_cast<std::size_t>(n); ++r)
          total += static_cast<std::uint32_t>(mixed(i + 7919 * r));
        wrong += data[i] != total;
      }
      EXPECT_EQ(wrong, 0U) << "rank " << c.rank() << " of " << n;
    });
}

/// What a name at run time is refused for, a type at compile time is refused for as well.
TEST(algorithm_as_type, is_refused_where_it_does_not_fit) {
  on_ranks(medium::in_process, 3, [](comm& c) {
    std::vector<std::uint32_t> data(100, 1);
    auto const refusal = [&](auto&& call) {
      try {
        call();
      } catch (invalid_argument const& e) { return std::string(e.what()); }
      return std::string("was accepted");
    };
    auto const wrong_ranks = refusal([&] { c.all_reduce<ordered_halving>(data, sum); });
    EXPECT_NE(wrong_ranks.find("ordered_halving does not work for 3 ranks"), std::string::npos) << wrong_ranks;
    auto const wrong_tree = refusal([&] { c.all_reduce<ring>(data, sum, {.ordered = true}); });
    EXPECT_NE(wrong_tree.find("ring has a summation tree"), std::string::npos) << wrong_tree;
    c.all_reduce<ring>(data, sum);
    EXPECT_EQ(data, std::vector<std::uint32_t>(100, 3));
  });
}

/// The state of a lambda lives as long as the call, not only as long as the statement that starts it.
TEST(lambda, that_captures_lives_as_long_as_an_asynchronous_call) {
  on_ranks(medium::in_process, 3, [&](comm& c) {
    std::vector<std::uint64_t> data(100003, static_cast<std::uint64_t>(c.rank() + 1));
    work call;
    {
      std::array<std::uint64_t, 4> const offsets{5, 50, 500, 5000};
      call = c.start_all_reduce<tree>(
          data, [offsets](std::uint64_t a, std::uint64_t b) noexcept { return a + b + offsets[0] + offsets[3]; });
    }
    call.wait();
    EXPECT_EQ(std::count(data.begin(), data.end(), 6U + 2 * 5005U), static_cast<std::ptrdiff_t>(data.size()));
  });
}

}  // namespace
