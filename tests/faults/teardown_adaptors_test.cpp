#include "calls.hpp"
#include <rondo/transports/faults.hpp>

namespace {

using namespace faults_test;
using namespace std::chrono_literals;

/// Every collective, with counts that leave odd rests, and results that make() checks.
void everything(comm& c, std::size_t count) {
  using enum collective;
  rank_t const last = c.size() - 1;
  make(c, {.count = count});
  make(c, {.count = count, .type = of::float64, .starts = true});
  make(c, {.count = count, .type = of::int32, .options = {.algorithm = algorithm::ring}});
  make(c, {.count = count, .op = by::max, .options = {.algorithm = algorithm::double_tree}});
  make(c, {.count = count, .options = {.ordered = true}});
  for (auto const what : {broadcast, reduce, gather, scatter})
    for (rank_t const root : {0, last}) make(c, {.what = what, .count = count, .root = root});
  for (auto const what : {reduce_scatter, all_gather, all_to_all}) make(c, {.what = what, .count = count});
  std::vector<std::size_t> uneven(static_cast<std::size_t>(c.size()), count);
  uneven.front() = 0;
  uneven.back() += 3;
  for (auto const what : {reduce_scatter, all_gather}) make(c, {.what = what, .counts = uneven});
  make(c, {.what = barrier});
  if (c.rank() == 0) make(c, {.what = send_receive, .count = count, .to = last});
  if (c.rank() == last) make(c, {.what = send_receive, .count = count, .sender = 0});
}

class trickle : public bounded<std::tuple<int, std::size_t>> {};

TEST_P(trickle, changes_no_result) {
  auto const [n, most] = GetParam();
  team ranks(
      medium::in_process, n, [most = most](comm& c, seat&) { everything(c, most == 1 ? 13 : 7000); }, {.deadline = 30s},
      [most = most](any_transport x) -> any_transport { return trickling(std::move(x), most, 7); });
  ranks.wait();
  ranks.expect_all(ending::done);
}

INSTANTIATE_TEST_SUITE_P(of, trickle,
                         testing::Combine(testing::Values(2, 3, 5), testing::Values(std::size_t{1}, std::size_t{1000})),
                         [](auto const& info) {
                           return std::to_string(std::get<1>(info.param)) + "_bytes_" +
                                  std::to_string(std::get<0>(info.param)) + "_ranks";
                         });

TEST(delay, changes_no_result) {
  team ranks(
      medium::in_process, 3,
      [](comm& c, seat&) {
        everything(c, 100);
        std::this_thread::sleep_for(200ms);  // whoever leaves takes along what has not been shown yet
      },
      {.deadline = 30s}, [](any_transport x) -> any_transport { return delayed(std::move(x), 300us); });
  ranks.wait();
  ranks.expect_all(ending::done);
}

class cut_off : public bounded<std::tuple<std::size_t, medium>> {};

TEST_P(cut_off, becomes_the_loss_of_the_peer_everywhere) {
  auto const [bytes, m] = GetParam();
  team ranks(
      m, 3,
      [](comm& c, seat&) {
        for (;;) {
          make(c, {.count = 1000});
          make(c, {.count = 100000, .starts = true});
        }
      },
      {.deadline = 20s},
      [bytes = bytes](any_transport x) -> any_transport {
        if (x.rank() != 0) return x;
        return cut(std::move(x), 1, bytes);
      });
  ranks.wait();
  ranks.expect_all(ending::peer_lost);
  ranks.expect_named(1);
}

INSTANTIATE_TEST_SUITE_P(line, cut_off,
                         testing::Combine(testing::Values(std::size_t{1}, std::size_t{63}, std::size_t{5000},
                                                          std::size_t{1000000}),
                                          testing::ValuesIn(media)),
                         [](auto const& info) {
                           return "after_" + std::to_string(std::get<0>(info.param)) + "_bytes_" +
                                  name_of(std::get<1>(info.param));
                         });

}  // namespace
