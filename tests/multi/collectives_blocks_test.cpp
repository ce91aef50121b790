#include "collectives.hpp"

#include <numeric>

// Blocks of uneven size, empty ones among them.

namespace {

using namespace collectives_test;

using sizes = std::vector<std::size_t>;

std::size_t before(sizes const& blocks, std::size_t q) {
  return std::accumulate(blocks.begin(), blocks.begin() + static_cast<std::ptrdiff_t>(q), std::size_t{0});
}
std::size_t total(sizes const& blocks) { return before(blocks, blocks.size()); }

/// Sizes of n blocks, as different as can be.
std::vector<sizes> shapes(int ranks) {
  auto const n = static_cast<std::size_t>(ranks);
  sizes const none(n, 0);
  sizes first(none), last(none), rising(none), gaps(none), wild(none);
  first.front() = 5000;
  last.back() = 70001;
  for (std::size_t q = 0; q < n; ++q) {
    rising[q] = q;
    gaps[q] = q % 2 == 0 ? 0 : 999;
    wild[q] = mixed(q + n) % 20000;
  }
  return {none, first, last, rising, gaps, wild};
}

class uneven_blocks : public testing::TestWithParam<std::tuple<medium, int>> {
 protected:
  medium where() const { return std::get<0>(GetParam()); }
  int ranks() const { return std::get<1>(GetParam()); }
};
std::string name_of_case(testing::TestParamInfo<std::tuple<medium, int>> const& info) {
  return name_of(std::get<0>(info.param)) + "_" + std::to_string(std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(between_threads, uneven_blocks,
                         testing::Combine(testing::Values(medium::in_process), testing::Values(1, 2, 3, 4, 5, 7, 8)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(over, uneven_blocks,
                         testing::Combine(testing::Values(medium::shm, medium::tcp), testing::Values(3, 4)),
                         name_of_case);

std::uint64_t element(std::size_t r, std::size_t i) { return mixed(i * 16 + r); }

TEST_P(uneven_blocks, are_gathered_on_all_ranks) {
  on_ranks(where(), ranks(), [&](comm& c) {
    auto const r = static_cast<std::size_t>(c.rank());
    for (sizes const& blocks : shapes(ranks()))
      for (algorithm const how : algorithms_for(collective::all_gather, ranks()))
        for (bool const in_place : {false, true}) {
          guarded<std::uint64_t> in(blocks[r], 1), out(total(blocks), 2);
          in.fill([&](std::size_t i) { return element(r, i); });
          auto const own = out.part(before(blocks, r), blocks[r]);
          if (in_place && !own.empty()) std::memcpy(own.data(), in.all().data(), own.size_bytes());
          all_gather<std::uint64_t>(c, in_place ? own : in.all(), out.all(), blocks, {.algorithm = how});
          std::size_t q = 0;
          EXPECT_EQ(out.wrong([&](std::size_t i) {
            while (i >= before(blocks, q + 1)) ++q;
            return element(q, i - before(blocks, q));
          }),
                    "")
              << to_string(how) << (in_place ? " in place" : "");
          EXPECT_EQ(in.wrong([&](std::size_t i) { return element(r, i); }), "");
        }
  });
}

TEST_P(uneven_blocks, are_reduced_and_scattered) {
  on_ranks(where(), ranks(), [&](comm& c) {
    auto const r = static_cast<std::size_t>(c.rank());
    for (sizes const& blocks : shapes(ranks()))
      for (algorithm const how : algorithms_for(collective::reduce_scatter, ranks()))
        for (bool const in_place : {false, true}) {
          guarded<std::uint64_t> in(total(blocks), 1), out(blocks[r], 2);
          in.fill([&](std::size_t i) { return element(r, i); });
          std::size_t const offset = before(blocks, r);
          auto const own = in.part(offset, blocks[r]);
          reduce_scatter<std::uint64_t>(c, in.all(), in_place ? own : out.all(), blocks, sum, {.algorithm = how});
          auto const summed = [&](std::size_t i) {
            std::uint64_t all = 0;
            for (std::size_t q = 0; q < blocks.size(); ++q) all += element(q, i);
            return all;
          };
          if (!in_place) {
            EXPECT_EQ(out.wrong([&](std::size_t i) { return summed(offset + i); }), "") << to_string(how);
          }
          EXPECT_EQ(in.wrong([&](std::size_t i) {
            return in_place && i >= offset && i < offset + blocks[r] ? summed(i) : element(r, i);
          }),
                    "")
              << to_string(how) << (in_place ? " in place" : "");
        }
  });
}

/// Rank r sends counts(r, q) elements to rank q: none to some, tens of thousands to others.
std::size_t counts_between(std::size_t shape, std::size_t r, std::size_t q) {
  switch (shape) {
    case 0: return 0;
    case 1: return r == q ? 0 : 1;
    case 2: return r < q ? 3000 * q : 0;
    case 3: return q == 0 ? 9001 : r == 0 ? 17 : 0;
    default: return mixed(r * 16 + q) % (shape * 4000);
  }
}

TEST_P(uneven_blocks, are_exchanged_between_all_pairs) {
  on_ranks(where(), ranks(), [&](comm& c) {
    auto const r = static_cast<std::size_t>(c.rank()), n = static_cast<std::size_t>(ranks());
    for (std::size_t shape = 0; shape < 7; ++shape) {
      sizes to, from;
      for (std::size_t q = 0; q < n; ++q) {
        to.push_back(counts_between(shape, r, q));
        from.push_back(counts_between(shape, q, r));
      }
      guarded<std::uint64_t> in(total(to), 1), out(total(from), 2);
      in.fill([&](std::size_t i) { return element(r, i); });
      all_to_all<std::uint64_t>(c, in.all(), to, out.all(), from);
      std::size_t q = 0;
      EXPECT_EQ(out.wrong([&](std::size_t i) {
        while (i >= before(from, q + 1)) ++q;
        std::size_t first = 0;
        for (std::size_t p = 0; p < r; ++p) first += counts_between(shape, q, p);
        return element(q, first + i - before(from, q));
      }),
                "")
          << "shape " << shape << ", rank " << r;
      EXPECT_EQ(in.wrong([&](std::size_t i) { return element(r, i); }), "");
    }
  });
}

}  // namespace
