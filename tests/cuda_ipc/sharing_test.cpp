#include "../conformance/ranks.hpp"
#include "worlds.hpp"
#include <rondo/error.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rondo::testing {
namespace {

using namespace cuda_ipc_test;

/// Connects n ranks that play processes; returns what each says: explain(), or the sentence of its connect_error.
std::vector<std::string> connect(std::vector<options_type> const& places) {
  auto const n = static_cast<int>(places.size());
  auto const groups = in_process_group::make(n);
  std::vector<std::string> said(places.size());
  on_ranks(n, [&](rank_t r) {
    auto const i = static_cast<std::size_t>(r);
    try {
      auto x = transport_type::connect(groups[i], places[i], group::clock::now() + std::chrono::seconds(20));
      said[i] = x.explain(0);
      if (n > 1) exchange(x, {(r + 1) % n, (r + n - 1) % n}, stream(1, 1000));
    } catch (connect_error const& e) { said[i] = e.what(); }
  });
  for (auto const& o : places) {
    if (!o.runtime.shared()) continue;
    EXPECT_EQ(o.runtime.inside().allocations(), 0u) << "memory was left behind";
    for (auto const& fault : o.runtime.inside().faults()) ADD_FAILURE() << fault;
  }
  return said;
}

void expect_all(std::vector<std::string> const& said, std::string const& begin) {
  for (auto const& text : said) EXPECT_EQ(text.find(begin), 0u) << text;
  for (auto const& text : said) EXPECT_EQ(text, said.front());
}

TEST(cuda_ipc, ranks_agree_on_one_way_to_share_memory) {
  expect_all(connect(places_of(3, place::one_process)), "cuda_ipc by pointers");
  expect_all(connect(places_of(3, place::own_process)), "cuda_ipc by files");
  expect_all(connect(places_of(3, place::own_process, {.has_files = false})), "cuda_ipc by handles");
  // Files are there, says the platform, and then cannot be made.
  expect_all(connect(places_of(3, place::own_process, {.exports_files = false})), "cuda_ipc by handles");
  auto mixed = places_of(3, place::own_process);
  mixed[2] = places_of(3, place::own_process, {.has_files = false})[2];
  expect_all(connect(mixed), "cuda_ipc by handles");
}

TEST(cuda_ipc, ranks_of_one_process_do_not_open_handles_of_their_own) {
  auto places = places_of(4, place::own_process, {.has_files = false});
  places[1].runtime = host_runtime(places[0].runtime.shared(), 1);
  places[3].runtime = host_runtime(places[2].runtime.shared(), 2);
  expect_all(connect(places), "cuda_ipc by handles");
}

TEST(cuda_ipc, refuses_on_all_ranks_what_cannot_be) {
  expect_all(connect(places_of(3, place::own_process, {.reaches = [](int a, int b) { return a + b != 3; }})),
             "rondo: rank 1 cannot address the devices of all ranks: it has no peer access to the device of rank 2");
  auto hidden = places_of(3, place::own_process);
  hidden[1].runtime = host_runtime(std::make_shared<host_process>(platform{}, std::vector{1, 0}), 0);
  expect_all(connect(hidden), "rondo: rank 1 cannot address the devices of all ranks: the device of rank 2 is on "
                              "another host or hidden from this process");
  auto none = places_of(2, place::own_process);
  none[1].runtime = host_runtime();
  expect_all(connect(none), "rondo: rank 1 cannot use a device: no CUDA-capable device is detected");
  expect_all(connect(places_of(2, place::own_process, {.has_files = false, .opens_handles = false})),
             "rondo: rank 0 cannot open the memory of another rank's device: peer access is not supported (101)");
}

TEST(cuda_ipc, does_not_believe_a_platform_that_loses_what_is_stored) {
  for (auto const where : {place::one_process, place::own_process})
    expect_all(connect(places_of(4, where, {.loses = [](int a, int b) { return a == 2 && b == 1; }})),
               "rondo: rank 1 cannot use the memory of another rank's device: what it got from rank 2 is wrong");
}

/// What x holds in its arena is found there by all others, at the same place.
void expect_shared_arenas(transport_type& x, options_type const& o) {
  rank_t const me = x.rank();
  std::vector<rank_t> peers;
  for (rank_t q = 0; q < x.size(); ++q)
    if (q != me) peers.push_back(q);
  auto const read = [&](rank_t q, std::size_t at) {
    std::byte b{};
    o.runtime.copy(&b, x.arena(q).data() + at, 1, nullptr);
    o.runtime.wait(nullptr);
    return b;
  };
  for (rank_t q = 0; q < x.size(); ++q) EXPECT_EQ(read(q, x.arena(q).size() - 1), std::byte{0});
  exchange(x, peers, stream(0, 1));
  for (rank_t q = 0; q < x.size(); ++q) {
    auto const mark = static_cast<std::byte>(me * 16 + q + 1);
    o.runtime.copy(x.arena(q).data() + me, &mark, 1, nullptr);
    o.runtime.wait(nullptr);
  }
  exchange(x, peers, stream(0, 1));
  for (rank_t q = 0; q < x.size(); ++q) EXPECT_EQ(read(me, static_cast<std::size_t>(q)), std::byte(q * 16 + me + 1));
}

TEST(cuda_ipc, lends_an_arena_that_is_zero_at_first) {
  for (auto const where : {place::one_process, place::own_process})
    for (bool const files : {true, false}) {
      auto places = places_of(3, where, {.has_files = files});
      for (auto& o : places) o.arena_bytes = 5000;
      auto const groups = in_process_group::make(3);
      on_ranks(3, [&](rank_t r) {
        auto const& o = places[static_cast<std::size_t>(r)];
        auto x = transport_type::connect(groups[static_cast<std::size_t>(r)], o);
        ASSERT_EQ(x.arena(r).size(), 5000u);
        expect_shared_arenas(x, o);
      });
      for (auto const& o : places) EXPECT_EQ(o.runtime.inside().faults(), std::vector<std::string>{});
    }
}

TEST(cuda_ipc, keeps_what_a_late_peer_has_open) {
  auto places = places_of(2, place::own_process, {.has_files = false});
  for (auto& o : places) o.farewell = std::chrono::milliseconds(100);
  auto const groups = in_process_group::make(2);
  std::promise<void> left;
  on_ranks(2, [&](rank_t r) {
    auto const i = static_cast<std::size_t>(r);
    std::optional<transport_type> x(transport_type::connect(groups[i], places[i]));
    if (r == 1) left.get_future().wait();
    auto const start = std::chrono::steady_clock::now();
    x.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
    if (r == 0) left.set_value();
  });
  EXPECT_EQ(places[0].runtime.inside().allocations(), 1u) << "what is open elsewhere must not be freed";
  EXPECT_EQ(places[1].runtime.inside().allocations(), 0u);
  for (auto const& o : places) EXPECT_EQ(o.runtime.inside().faults(), std::vector<std::string>{});
}

/// The first byte at each of these places.
std::vector<int> first_bytes(host_runtime const& runtime, std::vector<std::byte*> const& places) {
  std::vector<int> values;
  for (auto const* place : places) {
    std::byte b{};
    runtime.copy(&b, place, 1, nullptr);
    runtime.wait(nullptr);
    values.push_back(static_cast<int>(b));
  }
  return values;
}

TEST(cuda_ipc, opens_an_allocation_once_for_all_buffers_in_it) {
  auto const places = places_of(3, place::own_process);
  auto const groups = in_process_group::make(3);
  on_ranks(3, [&](rank_t r) {
    auto const i = static_cast<std::size_t>(r);
    auto const& runtime = places[i].runtime;
    auto const until = group::clock::now() + std::chrono::seconds(20);
    auto x = transport_type::connect(groups[i], places[i]);
    auto const buffer_of = [&](int value) {
      device_buffer b(runtime, 5000);
      b.put(bytes(5000, static_cast<std::byte>(value + r)));
      return b;
    };
    std::optional<device_buffer> b(buffer_of(10));
    for (std::size_t const at : {std::size_t{0}, std::size_t{777}, std::size_t{4999}})
      EXPECT_EQ(first_bytes(runtime, x.share(*groups[i], b->all().data() + at, until)), (std::vector{10, 11, 12}));
    EXPECT_EQ(runtime.inside().opened(), 2) << "one allocation of each of two peers";
    x.withdraw(*groups[i], b->all().data(), until);
    b.reset();
    b.emplace(buffer_of(20));
    EXPECT_EQ(first_bytes(runtime, x.share(*groups[i], b->all().data(), until)), (std::vector{20, 21, 22}));
    auto const some = x.share(*groups[i], r == 1 ? nullptr : b->all().data(), until);
    EXPECT_EQ(some[1], nullptr);
    EXPECT_NE(some[2], nullptr);
    EXPECT_EQ(runtime.inside().opened(), 4);
    x.withdraw(*groups[i], r == 1 ? nullptr : b->all().data(), until);
    auto const kept = std::move(x);  // ends before the buffer does: rank 1's is still open elsewhere until then
  });
  for (auto const& o : places) EXPECT_EQ(o.runtime.inside().faults(), std::vector<std::string>{});
  for (auto const& o : places) EXPECT_EQ(o.runtime.inside().allocations(), 0u);
}

TEST(cuda_ipc, forgets_an_allocation_that_another_one_has_replaced) {
  auto const places = places_of(2, place::own_process);
  auto const groups = in_process_group::make(2);
  on_ranks(2, [&](rank_t r) {
    auto const i = static_cast<std::size_t>(r);
    auto const& runtime = places[i].runtime;
    auto const until = group::clock::now() + std::chrono::seconds(20);
    auto x = transport_type::connect(groups[i], places[i]);
    for (int round = 0; round < 3; ++round) {
      device_buffer b(runtime, 300'000);
      b.put(bytes(300'000, static_cast<std::byte>(round * 2 + r)));
      EXPECT_EQ(first_bytes(runtime, x.share(*groups[i], b.all().data(), until)),
                (std::vector{round * 2, round * 2 + 1}));
      groups[i]->exchange({}, until);
    }
  });
  // The test has broken the rule, and the runtime says so: it is freed while the peer has it open.
  for (auto const& o : places)
    for (auto const& fault : o.runtime.inside().faults()) EXPECT_EQ(fault, "freed what others have open");
}

TEST(cuda_ipc, refuses_to_share_what_is_no_memory_of_a_device) {
  auto const places = places_of(2, place::own_process);
  auto const groups = in_process_group::make(2);
  on_ranks(2, [&](rank_t r) {
    auto const i = static_cast<std::size_t>(r);
    auto const until = group::clock::now() + std::chrono::seconds(20);
    auto x = transport_type::connect(groups[i], places[i]);
    device_buffer const b(places[i].runtime, 100);
    std::byte host{};
    try {
      x.share(*groups[i], r == 1 ? &host : b.all().data(), until);
      ADD_FAILURE() << "memory of the host was shared";
    } catch (connect_error const& e) {
      EXPECT_EQ(std::string(e.what()),
                "rondo: rank 1 cannot share a buffer on its device: invalid argument: no device memory");
    }
    auto const all = x.share(*groups[i], b.all().data(), until);  // the transport stays usable
    EXPECT_NE(all[0], nullptr);
    x.withdraw(*groups[i], b.all().data(), until);
  });
  for (auto const& o : places) EXPECT_EQ(o.runtime.inside().faults(), std::vector<std::string>{});
}

TEST(cuda_ipc, refuses_a_ring_that_is_no_multiple_of_a_page) {
  auto o = places_of(1, place::one_process)[0];
  o.ring_bytes = 5000;
  EXPECT_THROW(transport_type::connect(in_process_group::make(1)[0], o), invalid_argument);
}

}  // namespace
}  // namespace rondo::testing
