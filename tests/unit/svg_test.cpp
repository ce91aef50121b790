#include "schedule_families.hpp"
#include <rondo/schedule/svg.hpp>

#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace rondo;
using namespace schedule_tools;

int occurrences(std::string_view text, std::string_view what) {
  int n = 0;
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}

/// Whether every element is closed in the order in which it was opened, and attributes are quoted.
bool well_formed(std::string_view xml) {
  std::vector<std::string_view> open;
  for (auto at = xml.find('<'); at != xml.npos; at = xml.find('<', at + 1)) {
    auto const end = xml.find('>', at);
    if (end == xml.npos) return false;
    std::string_view const tag = xml.substr(at + 1, end - at - 1);
    if (tag.find('<') != tag.npos || occurrences(tag, "\"") % 2) return false;
    std::string_view const name = tag.substr(tag.front() == '/', tag.find_first_of(" /", 1) - (tag.front() == '/'));
    if (tag.front() == '/') {
      if (open.empty() || open.back() != name) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  return open.empty();
}

TEST(svg, well_formed_knows_what_is_not) {
  EXPECT_TRUE(well_formed("<a b=\"c\"><d/>e</a>"));
  EXPECT_FALSE(well_formed("<a><b></a></b>"));
  EXPECT_FALSE(well_formed("<a>"));
  EXPECT_FALSE(well_formed("<a b=\"c></a>"));
}

TEST(svg, every_family_can_be_drawn) {
  for_each_family([](std::string const& name, look_at_schedules const& schedules_of) {
    for (int const ranks : {1, 2, 5, 16})
      schedules_of(ranks, {0}, [&](kind what, schedule_ref const& s, rank_t) {
        std::string const picture = svg(s, {.title = name + ' ' + name_of(what)});
        EXPECT_TRUE(well_formed(picture)) << name << ' ' << name_of(what) << ' ' << ranks;
        EXPECT_LT(picture.size(), 400'000u) << name << ' ' << name_of(what) << ' ' << ranks;
      });
  });
}

TEST(svg, draws_an_arrow_for_each_message) {
  std::string const picture = svg(ring::all_gather{4});
  // 12 messages, of which those of rank 3 go out on the right and come in on the left; 4 lines for the ranks.
  EXPECT_EQ(occurrences(picture, "<line "), 12 + 3 + 4);
  EXPECT_EQ(occurrences(picture, "<circle "), 4);
}

TEST(svg, names_what_it_shows_and_nothing_else) {
  std::string const ring_picture = svg(ring::all_reduce{3}, {.title = "Ring"});
  for (std::string_view const word : {">Ring<", ">3 ranks, 3 chunks, 4 rounds<", ">fold<", ">copy<", ">makes it final<",
                                      ">passed on, not kept<", ">rank 0<", "viewBox="})
    EXPECT_NE(ring_picture.find(word), std::string::npos) << word;
  std::string const gather_picture = svg(ring::all_gather{3});
  for (std::string_view const word : {">fold<", ">makes it final<", ">passed on, not kept<"})
    EXPECT_EQ(gather_picture.find(word), std::string::npos) << word;
}

TEST(svg, labels_slices) {
  struct ends {
    slice what;
    int ranks() const noexcept { return 2; }
    int chunks() const noexcept { return 6; }
    int rounds() const noexcept { return 1; }
    int period() const noexcept { return 1; }
    step at(rank_t r, int) const noexcept { return r ? step{.from = 0, .in = what} : step{.to = 1, .out = what}; }
  };
  EXPECT_NE(svg(ends{{4, 1}}).find(">4<"), std::string::npos);
  EXPECT_NE(svg(ends{{2, 3}}).find(">2-4<"), std::string::npos);
  EXPECT_NE(svg(ends{{5, 2}}).find(">5-0<"), std::string::npos) << "slices are cyclic";
  EXPECT_NE(svg(ends{{0, 6}}).find(">all<"), std::string::npos);
}

TEST(svg, escapes_titles) {
  std::string const picture = svg(ring::all_gather{2}, {.title = "a < b & c"});
  EXPECT_NE(picture.find("a &lt; b &amp; c"), std::string::npos);
  EXPECT_TRUE(well_formed(picture));
}

}  // namespace
