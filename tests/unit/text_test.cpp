#include <rondo/detail/file_text.hpp>
#include <rondo/detail/insertion_sort.hpp>
#include <rondo/detail/text.hpp>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

// What the library's sentences are made of.

namespace {

using rondo::detail::file_text;
using rondo::detail::insertion_sort;
using rondo::detail::text_of;

TEST(text, joins_characters_and_numbers) {
  EXPECT_EQ(text_of({}), "");
  EXPECT_EQ(text_of({"rank ", 3, " of ", std::size_t{4}, std::string(" has "), std::string_view("left for good", 4)}),
            "rank 3 of 4 has left");
}

TEST(text, writes_every_whole_number) {
  using small = std::numeric_limits<std::int8_t>;
  using wide = std::numeric_limits<std::int64_t>;
  EXPECT_EQ(text_of({0, " ", -1, " ", small::min(), " ", std::uint8_t{255}}), "0 -1 -128 255");
  EXPECT_EQ(text_of({wide::min(), " ", wide::max()}), "-9223372036854775808 9223372036854775807");
  EXPECT_EQ(text_of({std::numeric_limits<std::uint64_t>::max()}), "18446744073709551615");
}

TEST(text, keeps_zero_bytes) {
  EXPECT_EQ(text_of({std::string_view("a\0b", 3), 7}), (std::string{'a', '\0', 'b', '7'}));
}

TEST(file_text, is_all_of_it_or_nothing) {
  std::string text(10000, 'x');  // more than is read at once
  text += '\0';
  std::string const path = testing::TempDir() + "rondo_file_text_" + std::to_string(::getpid());
  std::ofstream(path) << text;
  EXPECT_EQ(file_text(path.c_str()), text);
  std::remove(path.c_str());
  EXPECT_EQ(file_text("/dev/null"), "");
  EXPECT_FALSE(file_text("/dev/null/none"));
  EXPECT_FALSE(file_text("/proc"));
}

TEST(insertion_sort, keeps_the_order_of_equals) {
  std::vector<std::pair<int, int>> all{{2, 0}, {1, 1}, {2, 2}, {0, 3}, {1, 4}, {1, 5}};
  insertion_sort(all, [](auto const& a, auto const& b) { return a.first < b.first; });
  EXPECT_EQ(all, (std::vector<std::pair<int, int>>{{0, 3}, {1, 1}, {1, 4}, {1, 5}, {2, 0}, {2, 2}}));
  std::vector<int> none;
  insertion_sort(none, [](int, int) { return true; });
  EXPECT_TRUE(none.empty());
}

}  // namespace
