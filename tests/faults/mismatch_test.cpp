#include "calls.hpp"

#include <functional>
#include <regex>
#include <tuple>

namespace {

using namespace faults_test;

/// A way to disagree: the calls of rank `r` of `n`, of whom `odd` is the one that differs.
struct place {
  rank_t r;
  int n;
  rank_t odd;
  std::size_t count;

  bool differs() const { return r == odd; }
  std::size_t own_count() const { return count + differs(); }
  rank_t own_root() const { return differs() ? 1 : 0; }
  rank_t neighbour() const { return (odd + 1) % n; }
};
struct disagreement {
  std::string name;
  std::function<std::vector<call>(place const&)> calls;
};

/// One count more for rank 0 and one less for the last.
std::vector<std::size_t> uneven(place const& p, bool differs) {
  std::vector<std::size_t> counts(static_cast<std::size_t>(p.n), p.count);
  counts.front() += differs;
  counts.back() -= differs;
  return counts;
}

std::vector<disagreement> const& ways() {
  using enum collective;
  using calls = std::vector<call>;
  static std::vector<disagreement> const all{
      {"count", [](place const& p) { return calls{{.count = p.own_count()}}; }},
      {"much_larger", [](place const& p) { return calls{{.count = p.differs() ? 1U << 20U : p.count - 1}}; }},
      {"empty", [](place const& p) { return calls{{.count = p.differs() ? 0 : p.count}}; }},
      {"type", [](place const& p) { return calls{{.count = p.count, .type = p.differs() ? of::int32 : of::float32}}; }},
      {"wider_type",
       [](place const& p) { return calls{{.count = p.count, .type = p.differs() ? of::float64 : of::float32}}; }},
      {"operation", [](place const& p) { return calls{{.count = p.count, .op = p.differs() ? by::max : by::sum}}; }},
      {"ordered",
       [](place const& p) {
         return calls{
             {.count = p.count, .options = {.ordered = p.differs(), .algorithm = algorithm::recursive_doubling}}};
       }},
      {"algorithm",
       [](place const& p) {
         return calls{{.count = p.count,
                       .options = {.algorithm = p.differs() ? algorithm::ring : algorithm::recursive_doubling}}};
       }},
      {"asynchronous_count", [](place const& p) { return calls{{.count = p.own_count(), .starts = true}}; }},
      {"asynchronous_and_blocking",
       [](place const& p) { return calls{{.count = p.own_count(), .starts = p.differs()}}; }},

      {"all_reduce_or_broadcast",
       [](place const& p) { return calls{{.what = p.differs() ? broadcast : all_reduce, .count = p.count}}; }},
      {"broadcast_or_barrier",
       [](place const& p) { return calls{{.what = p.differs() ? barrier : broadcast, .count = p.count}}; }},
      {"gather_or_scatter",
       [](place const& p) { return calls{{.what = p.differs() ? gather : scatter, .count = p.count}}; }},
      {"all_to_all_or_reduce",
       [](place const& p) { return calls{{.what = p.differs() ? all_to_all : reduce, .count = p.count}}; }},
      {"order",
       [](place const& p) {
         calls both{{.what = broadcast, .count = p.count}, {.count = p.count}};
         if (p.differs()) std::swap(both[0], both[1]);
         return both;
       }},
      {"one_call_more", [](place const& p) { return calls(p.differs() ? 3 : 2, call{.count = p.count}); }},
      {"one_call_less", [](place const& p) { return calls(p.differs() ? 2 : 3, call{.count = p.count}); }},

      {"broadcast_root",
       [](place const& p) { return calls{{.what = broadcast, .count = p.count, .root = p.own_root()}}; }},
      {"reduce_root", [](place const& p) { return calls{{.what = reduce, .count = p.count, .root = p.own_root()}}; }},
      {"gather_root", [](place const& p) { return calls{{.what = gather, .count = p.count, .root = p.own_root()}}; }},
      {"scatter_root", [](place const& p) { return calls{{.what = scatter, .count = p.count, .root = p.own_root()}}; }},
      {"broadcast_count", [](place const& p) { return calls{{.what = broadcast, .count = p.own_count()}}; }},
      {"reduce_count", [](place const& p) { return calls{{.what = reduce, .count = p.own_count()}}; }},
      {"gather_count", [](place const& p) { return calls{{.what = gather, .count = p.own_count()}}; }},
      {"scatter_count", [](place const& p) { return calls{{.what = scatter, .count = p.own_count()}}; }},
      {"reduce_scatter_count", [](place const& p) { return calls{{.what = reduce_scatter, .count = p.own_count()}}; }},
      {"all_gather_count", [](place const& p) { return calls{{.what = all_gather, .count = p.own_count()}}; }},
      {"all_to_all_count", [](place const& p) { return calls{{.what = all_to_all, .count = p.own_count()}}; }},
      {"all_gather_blocks",
       [](place const& p) { return calls{{.what = all_gather, .counts = uneven(p, p.differs())}}; }},
      {"reduce_scatter_blocks",
       [](place const& p) { return calls{{.what = reduce_scatter, .counts = uneven(p, p.differs())}}; }},
      {"all_to_all_blocks",  // only one pair of ranks disagrees
       [](place const& p) {
         call c{.what = all_to_all, .counts = uneven(p, false), .from = uneven(p, false)};
         if (p.differs()) ++c.counts[static_cast<std::size_t>(p.neighbour())];
         return calls{c};
       }},

      {"message_size",
       [](place const& p) {
         if (p.differs()) return calls{{.what = send_receive, .count = p.count + 1, .to = p.neighbour()}};
         if (p.r == p.neighbour()) return calls{{.what = send_receive, .count = p.count, .sender = p.odd}};
         return calls{};
       }},
      {"asynchronous_message_size",
       [](place const& p) {
         if (p.differs()) return calls{{.what = send_receive, .count = p.count, .to = p.neighbour(), .starts = true}};
         if (p.r == p.neighbour())
           return calls{{.what = send_receive, .count = p.count + 1, .sender = p.odd, .starts = true}};
         return calls{};
       }},
      {"message_or_collective",
       [](place const& p) {
         if (!p.differs()) return calls{{.count = p.count}};
         calls to_all;
         for (rank_t r = 0; r < p.n; ++r)
           if (r != p.odd) to_all.push_back({.what = send_receive, .count = 2, .to = r});
         return to_all;
       }},
  };
  return all;
}

class mismatch : public bounded<std::tuple<std::size_t, medium>> {};

TEST_P(mismatch, every_rank_learns_who_called_what) {
  auto const [index, m] = GetParam();
  auto const& way = ways()[index];
  constexpr std::pair<int, std::size_t> worlds[]{{2, 2}, {3, 2}, {5, 2}, {3, 1U << 20U}};
  for (auto const& [n, count] : worlds) {
    SCOPED_TRACE(std::to_string(n) + " ranks, about " + std::to_string(count) + " elements");
    auto const calls_of = [&way, n = n, count = count](rank_t r) { return way.calls({r, n, n / 2, count}); };
    team ranks(m, n, [&](comm& c, seat&) {
      for (auto const& what : calls_of(c.rank())) make(c, what);
      make(c, {.what = collective::barrier});
      make(c, {.what = collective::barrier});
    });
    ranks.wait();
    ranks.expect_all(ending::mismatch);
    if (HasFailure()) return;

    std::string const text = ranks[0].text();
    std::regex const form("rondo: rank (\\d+) called (.+), but rank (\\d+) called (.+): make every rank .*");
    std::smatch part;
    ASSERT_TRUE(std::regex_match(text, part, form)) << text;
    rank_t const one = std::stoi(part[1]), other = std::stoi(part[3]);
    EXPECT_TRUE(one == n / 2 || other == n / 2) << text;
    EXPECT_NE(part[2], part[4]) << "the text does not say what differs";
    for (auto const& [r, said] : {std::pair{one, part[2].str()}, {other, part[4].str()}}) {
      auto calls = calls_of(r);
      calls.push_back({.what = collective::barrier});
      EXPECT_TRUE(std::any_of(calls.begin(), calls.end(), [&, n = n](auto const& c) { return describes(said, c, n); }))
          << "rank " << r << " did not call what this says: " << text;
    }
  }
}

std::string name_of_case(testing::TestParamInfo<std::tuple<std::size_t, medium>> const& info) {
  return ways()[std::get<0>(info.param)].name + "_" + name_of(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(calls, mismatch,
                         testing::Combine(testing::Range(std::size_t{0}, ways().size()), testing::ValuesIn(media)),
                         name_of_case);

}  // namespace
