#include "collectives.hpp"
#include <rondo/fused/scale.hpp>
#include <rondo/registered_buffer.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory_resource>
#include <ostream>
#include <string>
#include <thread>
#include <utility>

// Buffers that all ranks can address, and those that are too small for windows: every way through shared memory gives
// the same bits.

namespace {

using namespace collectives_test;

/// Which ranks have registered buffers.
enum class registered { none, in_place, out_of_place, some, input_only };

struct registered_setting {
  medium where;
  int ranks;
  registered which;

  friend std::ostream& operator<<(std::ostream& out, registered_setting const& s) {
    return out << name_of(s.where) << " " << s.ranks << " ranks, kind " << static_cast<int>(s.which);
  }
};

class registered_buffers : public testing::TestWithParam<registered_setting> {};

/// Integers in float, whose sum is exact in any order.
float element(rank_t r, std::size_t i) {
  return static_cast<float>(mixed(i * 64 + static_cast<std::size_t>(r)) % 1000);
}

/// Around the sizes of letters, slots, windows, of several windows, and of what passes through small ones again.
constexpr std::size_t counts[] = {1, 3, 27, 28, 29, 1023, 1024, 1025, 8191, 8193, 65537, 300'001, 1'500'001, 4'200'001};

TEST_P(registered_buffers, all_reduce_is_exact_whoever_has_them) {
  auto const [where, ranks, which] = GetParam();
  on_ranks(where, ranks, [which = which](comm& c) {
    bool const mine = which != registered::none && (which != registered::some || c.rank() % 2 == 0);
    for (std::size_t const n : counts) {
      std::vector<float> plain(n);
      auto first = c.allocate<float>(n), second = c.allocate<float>(n);
      std::span<float> const in = mine ? std::span<float>(first) : std::span<float>(plain);
      std::span<float> const out = which == registered::out_of_place ? std::span<float>(second)
                                   : which == registered::input_only ? std::span<float>(plain)
                                                                     : in;
      for (std::size_t i = 0; i < n; ++i) in[i] = element(c.rank(), i);
      c.all_reduce(in, out, sum);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < n; ++i) {
        float expected = 0;
        for (rank_t q = 0; q < c.size(); ++q) expected += element(q, i);
        wrong += out[i] != expected;
        if (in.data() != out.data()) wrong += in[i] != element(c.rank(), i);
      }
      EXPECT_EQ(wrong, 0U) << n << " elements, rank " << c.rank();
    }
  });
}

TEST_P(registered_buffers, parts_of_them_at_any_alignment_are_as_good) {
  auto const [where, ranks, which] = GetParam();
  if (which != registered::in_place) GTEST_SKIP();
  on_ranks(where, ranks, [](comm& c) {
    constexpr std::size_t n = 100'003;
    auto bytes = c.allocate<std::uint8_t>(n + 64);
    std::size_t const shift = static_cast<std::size_t>(c.rank()) * 3 + 1;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
    c.all_reduce(std::span(bytes).subspan(shift, n), sum);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < n; ++i) {
      unsigned expected = 0;
      for (std::size_t q = 0; q < static_cast<std::size_t>(c.size()); ++q)
        expected += static_cast<unsigned>(i + q * 3 + 1);
      wrong += bytes[shift + i] != static_cast<std::uint8_t>(expected);
    }
    for (std::size_t i = 0; i < shift; ++i) wrong += bytes[i] != static_cast<std::uint8_t>(i);
    for (std::size_t i = shift + n; i < bytes.size(); ++i) wrong += bytes[i] != static_cast<std::uint8_t>(i);
    EXPECT_EQ(wrong, 0U) << "rank " << c.rank();
  });
}

TEST_P(registered_buffers, calls_of_all_kinds_take_turns) {
  auto const [where, ranks, which] = GetParam();
  if (which != registered::in_place) GTEST_SKIP();
  on_ranks(where, ranks, [](comm& c) {
    auto large = c.allocate<double>(200'000);
    std::vector<double> plain(200'000);
    for (int turn = 0; turn < 12; ++turn) {
      std::vector<double> small(5, c.rank());
      std::fill(large.begin(), large.end(), turn);
      std::fill(plain.begin(), plain.end(), turn);
      auto first = c.start_all_reduce(large, sum);
      auto second = c.start_all_reduce(plain, max);
      auto third = c.start_all_reduce(small, sum);
      first.wait();
      second.wait();
      third.wait();
      c.all_reduce(plain, sum, {.algorithm = algorithm::recursive_doubling});
      EXPECT_EQ(large[199'999], turn * c.size());
      EXPECT_EQ(plain[0], turn * c.size());
      EXPECT_EQ(small[4], c.size() * (c.size() - 1) / 2.0);
    }
  });
}

TEST_P(registered_buffers, calls_of_changing_sizes_keep_out_of_each_others_windows) {
  auto const [where, ranks, which] = GetParam();
  if (which != registered::none && which != registered::some) GTEST_SKIP();
  on_ranks(where, ranks, [some = which == registered::some](comm& c) {
    auto own = c.allocate<std::uint64_t>(65'536);
    std::vector<std::uint64_t> plain(65'536);
    std::span<std::uint64_t> const data = some && c.rank() == 0 ? std::span(own) : std::span(plain);
    auto const p = static_cast<std::uint64_t>(c.size());
    for (std::uint64_t turn = 0; turn < 200; ++turn) {
      std::size_t const count = (mixed(turn) % 65'536) >> (turn % 9);
      for (std::size_t i = 0; i < count; ++i) data[i] = mixed(turn * 65'536 + i) + static_cast<std::uint64_t>(c.rank());
      c.all_reduce(data.first(count), sum);
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(data[i], p * mixed(turn * 65'536 + i) + p * (p - 1) / 2) << count << " elements, turn " << turn;
    }
  });
}

TEST_P(registered_buffers, memory_comes_back) {
  auto const [where, ranks, which] = GetParam();
  if (which != registered::in_place) GTEST_SKIP();
  on_ranks(where, ranks, [](comm& c) {
    bool const shared = !c.memory()->is_equal(*std::pmr::new_delete_resource());
    float const* first = nullptr;
    for (int i = 0; i < 10; ++i) {
      auto const a = c.allocate<float>(1'000'000), b = c.allocate<float>(100);
      if (i == 0) first = a.data();
      EXPECT_TRUE(!shared || a.data() == first);
      EXPECT_NE(a.data(), b.data());
      EXPECT_EQ(a[999'999], 0);
    }
    std::pmr::vector<double> grows(c.memory().get());
    for (int i = 0; i < 10'000; ++i) grows.push_back(c.rank() + i);
    c.all_reduce(grows, sum);
    EXPECT_EQ(grows[9'999], c.size() * (c.size() - 1) / 2 + 9'999 * c.size());
  });
}

TEST_P(registered_buffers, outlive_their_communicator) {
  auto const [where, ranks, which] = GetParam();
  if (which != registered::in_place) GTEST_SKIP();
  std::vector<registered_buffer<int>> kept(static_cast<std::size_t>(ranks));
  on_ranks(where, ranks, [&](comm& c) {
    auto mine = c.allocate<int>(1000);
    mine[999] = c.rank();
    kept[static_cast<std::size_t>(c.rank())] = std::move(mine);
  });
  for (rank_t r = 0; r < ranks; ++r) EXPECT_EQ(kept[static_cast<std::size_t>(r)][999], r);
}

/// With so many ranks a slot has less room than what is otherwise sent with a letter.
TEST(many_ranks, send_small_buffers_through_windows) {
  on_ranks(medium::in_process, 64, [](comm& c) {
    for (std::size_t const n : {800U, 900U, 1000U, 1100U}) {
      std::vector<float> data(n, static_cast<float>(c.rank()));
      c.all_reduce(data, sum);
      EXPECT_EQ(std::count(data.begin(), data.end(), 2016.0F), static_cast<std::ptrdiff_t>(n)) << n << " elements";
    }
  });
}

/// Windows of all calls lie in the same memory: nobody writes to what a slow owner still reads for the call before.
TEST(windows, serve_calls_of_different_kinds_one_after_the_other) {
  for (medium const where : {medium::in_process, medium::shm})
    for (int const ranks : {2, 3})
      on_ranks(where, ranks, [](comm& c) {
        auto const p = static_cast<std::size_t>(c.size());
        auto const mine = [&](std::size_t n, std::size_t call) {
          std::vector<float> data(n);
          for (std::size_t i = 0; i < n; ++i) data[i] = element(c.rank(), i + call);
          return data;
        };
        auto const wrong = [&](std::vector<float> const& data, std::size_t begin) {
          std::size_t count = 0;
          for (std::size_t i = 0; i < data.size(); ++i) {
            float total = 0;
            for (rank_t r = 0; r < c.size(); ++r) total += element(r, begin + i);
            count += data[i] == total ? 0 : 1;
          }
          return count;
        };
        std::size_t call = 0;
        for (std::size_t const n : {4'200'001U, 5'000U, 70'000U, 1'500'001U, 5'000U, 4'200'001U, 300'001U}) {
          auto data = mine(n, ++call);
          c.all_reduce(data, sum);
          EXPECT_EQ(wrong(data, call), 0U) << n << " elements, call " << call;

          bool dawdles = c.rank() == 0;
          auto const add = [&dawdles](float a, float b) noexcept {
            if (std::exchange(dawdles, false)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
            return a + b;
          };
          std::vector<float> block(5000);
          c.reduce_scatter(mine(p * block.size(), ++call), block, add, scale{1.0F});
          EXPECT_EQ(wrong(block, static_cast<std::size_t>(c.rank()) * block.size() + call), 0U) << "call " << call;
        }
      });
}

TEST(registered_memory, says_with_sizes_when_it_is_short) {
  on_ranks(medium::shm, 2, [](comm& c) {
    for (int const bits : {34, 37}) try {  // 128 GiB, 1 TiB
        auto const huge = c.allocate<double>(std::size_t{1} << bits);
        ADD_FAILURE() << "2^" << bits << " doubles were allocated";
      } catch (error const& e) { EXPECT_NE(std::string(e.what()).find("MiB"), std::string::npos) << e.what(); }
    std::vector<int> one(1, 1);
    c.all_reduce(one, sum);
    EXPECT_EQ(one[0], 2);
  });
}

std::vector<registered_setting> all_settings() {
  std::vector<registered_setting> all;
  for (auto const where : media)
    for (int const ranks : {1, 2, 3, 5})
      for (auto const which :
           {registered::none, registered::in_place, registered::out_of_place, registered::some, registered::input_only})
        all.push_back({where, ranks, which});
  return all;
}

INSTANTIATE_TEST_SUITE_P(everywhere, registered_buffers, testing::ValuesIn(all_settings()));

}  // namespace
