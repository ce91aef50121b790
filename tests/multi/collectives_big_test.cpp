#include <rondo/schedule/binomial.hpp>
#include <rondo/schedule/recursive_doubling.hpp>
#include <rondo/schedule/ring.hpp>
#include <rondo/transports/in_process.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

// Buffers of more elements and bytes than an int counts. Needs 5 GiB of memory and is skipped where they are not free.

namespace {

using namespace rondo;

constexpr std::size_t count = (std::size_t{1} << 31) + 5;

std::size_t available_bytes() {
  std::ifstream memory("/proc/meminfo");
  for (std::string word; memory >> word;)
    if (word == "MemAvailable:") {
      std::size_t kilobytes = 0;
      memory >> kilobytes;
      return kilobytes << 10;
    }
  return std::numeric_limits<std::size_t>::max();
}

/// A byte that differs between places that are 2^8, 2^16 or 2^31 apart.
std::uint8_t byte_at(rank_t r, std::size_t i) {
  return static_cast<std::uint8_t>((i * 0x9e3779b97f4a7c15U >> 56) + static_cast<std::size_t>(r) * 3);
}

class big : public testing::Test {
 protected:
  void SetUp() override {
    std::size_t const needed = std::size_t{6} << 30, free = available_bytes();
    if (free < needed)
      GTEST_SKIP() << "needs " << (needed >> 30) << " GiB of free memory, there are " << (free >> 20) << " MiB";
  }

  static std::vector<std::uint8_t> filled(rank_t r) {
    std::vector<std::uint8_t> data(count);
    for (std::size_t i = 0; i < count; ++i) data[i] = byte_at(r, i);
    return data;
  }

  template <class F>
  static void expect(std::vector<std::uint8_t> const& data, F value_of) {
    std::size_t wrong = 0, first = 0;
    for (std::size_t i = 0; i < count; ++i)
      if (data[i] != value_of(i) && wrong++ == 0) first = i;
    EXPECT_EQ(wrong, 0U) << "first at " << first;
  }

  template <class Algorithm>
  static void reduces_all() {
    in_process::run(2, [](auto& c) {
      auto data = filled(c.rank());
      c.template all_reduce<Algorithm>(data, sum);
      expect(data, [](std::size_t i) { return static_cast<std::uint8_t>(byte_at(0, i) + byte_at(1, i)); });
    });
  }
};

TEST_F(big, all_reduce_in_place_by_ring) { reduces_all<ring>(); }

TEST_F(big, all_reduce_in_place_by_recursive_doubling) { reduces_all<recursive_doubling>(); }

TEST_F(big, broadcast_by_binomial_tree) {
  in_process::run(2, [](auto& c) {
    auto data = filled(c.rank());
    c.template broadcast<binomial>(data, 1);
    expect(data, [](std::size_t i) { return byte_at(1, i); });
  });
}

TEST_F(big, message) {
  in_process::run(2, [](auto& c) {
    auto data = filled(c.rank());
    if (c.rank() == 0)
      c.send(data, 1);
    else
      c.receive(data, 0);
    expect(data, [](std::size_t i) { return byte_at(0, i); });
  });
}

}  // namespace
