#include "collectives.hpp"

#include <memory>
#include <string_view>
#include <sys/mman.h>

// Arguments that no call could accept: refused on the rank that brings them, in a sentence with the name of the call
// and a way out; nothing is sent, nothing is written, and the communicator goes on.

namespace {

using namespace collectives_test;

using numbers = std::vector<std::int32_t>;

/// A buffer that lives as long as the thread.
std::span<std::int32_t> room(std::size_t count) {
  thread_local std::vector<std::unique_ptr<numbers>> all;
  return *all.emplace_back(std::make_unique<numbers>(count));
}

/// Every rank makes the wrong call; then all make right ones.
void refused(int ranks, std::function<void(comm&)> const& call, std::vector<std::string_view> const& words) {
  for (medium const where : {medium::in_process, medium::tcp})
    on_ranks(where, ranks, [&](comm& c) {
      try {
        call(c);
        ADD_FAILURE() << "was accepted";
      } catch (invalid_argument const& e) {
        for (std::string_view const word : words)
          EXPECT_NE(std::string_view(e.what()).find(word), std::string_view::npos)
              << "'" << word << "' is missing in: " << e.what();
      }
      numbers one{1};
      all_reduce<std::int32_t>(c, one, one, sum);
      EXPECT_EQ(one.front(), c.size());
      broadcast<std::int32_t>(c, one, 0);
    });
}

TEST(a_root, that_is_no_rank_is_refused_by_every_call) {
  for (rank_t const root : {-1, 3, 1000}) {
    std::string const given = std::to_string(root);
    refused(3, [&](comm& c) { broadcast<std::int32_t>(c, room(4), root); }, {"broadcast", given, "0 to 2"});
    refused(3, [&](comm& c) { reduce<std::int32_t>(c, room(4), room(4), sum, root); }, {"reduce", given, "0 to 2"});
    refused(3, [&](comm& c) { gather<std::int32_t>(c, room(4), room(12), root); }, {"gather", given, "0 to 2"});
    refused(3, [&](comm& c) { scatter<std::int32_t>(c, room(12), room(4), root); }, {"scatter", given, "0 to 2"});
  }
}

TEST(a_root, that_is_no_rank_is_refused_when_the_call_is_started) {
  refused(3, [&](comm& c) { start_broadcast<std::int32_t>(c, room(4), 3).wait(); }, {"broadcast", "3"});
  refused(3, [&](comm& c) { start_reduce<std::int32_t>(c, room(4), room(4), sum, -2).wait(); }, {"reduce", "-2"});
  refused(3, [&](comm& c) { start_gather<std::int32_t>(c, room(4), room(12), 3).wait(); }, {"gather", "3"});
  refused(3, [&](comm& c) { start_scatter<std::int32_t>(c, room(12), room(4), 3).wait(); }, {"scatter", "3"});
}

TEST(a_peer, that_is_no_rank_or_the_rank_itself_is_refused) {
  for (rank_t const peer : {-1, 3}) {
    refused(3, [&](comm& c) { send<std::int32_t>(c, room(4), peer); }, {"send", std::to_string(peer), "0 to 2"});
    refused(3, [&](comm& c) { receive<std::int32_t>(c, room(4), peer); }, {"receive", std::to_string(peer), "0 to 2"});
    refused(3, [&](comm& c) { start_send<std::int32_t>(c, room(4), peer).wait(); }, {"send"});
    refused(3, [&](comm& c) { start_receive<std::int32_t>(c, room(4), peer).wait(); }, {"receive"});
  }
  refused(3, [](comm& c) { send<std::int32_t>(c, room(4), c.rank()); }, {"itself", "copy"});
  refused(3, [](comm& c) { receive<std::int32_t>(c, room(4), c.rank()); }, {"itself", "copy"});
}

TEST(buffers, of_the_wrong_size_are_refused_with_the_right_one) {
  numbers const in(6);
  refused(3, [&](comm& c) { all_reduce<std::int32_t>(c, in, room(5), sum); }, {"all_reduce", "output", "6", "5"});
  refused(3, [&](comm& c) { reduce_scatter<std::int32_t>(c, in, room(3), {}, sum); },
          {"reduce_scatter", "input", "9", "6"});
  refused(3, [&](comm& c) { all_gather<std::int32_t>(c, in, room(6)); }, {"all_gather", "output", "18", "6"});
  refused(3, [&](comm& c) { all_to_all<std::int32_t>(c, room(7), {}, room(7), {}); }, {"all_to_all", "6", "7"});
  refused(3, [&](comm& c) { all_to_all<std::int32_t>(c, in, {}, room(9), {}); }, {"all_to_all", "output", "6", "9"});
  refused(1, [&](comm& c) { reduce<std::int32_t>(c, in, room(5), sum, 0); }, {"reduce", "output", "6", "5"});
  refused(1, [&](comm& c) { gather<std::int32_t>(c, in, room(5), 0); }, {"gather", "output", "6", "5"});
  refused(1, [&](comm& c) { scatter<std::int32_t>(c, in, room(5), 0); }, {"scatter", "input", "5", "6"});
}

TEST(counts, that_do_not_fit_ranks_or_buffers_are_refused) {
  std::size_t const two[]{1, 2}, three[]{1, 2, 3};
  refused(3, [&](comm& c) { reduce_scatter<std::int32_t>(c, room(3), room(1), two, sum); },
          {"reduce_scatter", "3 ranks", "2"});
  refused(3, [&](comm& c) { all_gather<std::int32_t>(c, room(1), room(3), two); }, {"all_gather", "3 ranks", "2"});
  refused(3, [&](comm& c) { all_to_all<std::int32_t>(c, room(3), two, room(6), three); },
          {"all_to_all", "3 ranks", "2"});
  refused(3, [&](comm& c) { reduce_scatter<std::int32_t>(c, room(5), room(1), three, sum); },
          {"reduce_scatter", "input", "6", "5"});
  refused(3, [&](comm& c) { all_gather<std::int32_t>(c, room(7), room(6), three); }, {"all_gather", "input", "7"});
  refused(3,
          [&](comm& c) { all_gather<std::int32_t>(c, room(static_cast<std::size_t>(c.rank() + 1)), room(5), three); },
          {"all_gather", "output", "6", "5"});
  refused(3, [&](comm& c) { all_to_all<std::int32_t>(c, room(6), three, room(5), three); },
          {"all_to_all", "output", "6", "5"});
}

TEST(all_to_all_v, refuses_a_block_for_itself_that_changes_its_size) {
  refused(2,
          [](comm& c) {
            std::size_t const to[]{1, 1}, from[]{2, 2};
            all_to_all<std::int32_t>(c, room(2), to, room(4), from);
          },
          {"all_to_all", "same count"});
}

/// In place means the very same place; anything between that and apart would be overwritten while it is read.
TEST(buffers, that_overlap_in_part_are_refused) {
  auto const half = [](numbers& all) { return std::span(all).subspan(3, 6); };
  auto const front = [](numbers& all) { return std::span(all).first(6); };
  refused(3,
          [&](comm& c) {
            numbers all(9);
            all_reduce<std::int32_t>(c, front(all), half(all), sum);
          },
          {"all_reduce", "overlap", "same buffer"});
  refused(3,
          [&](comm& c) {
            numbers all(9);
            reduce<std::int32_t>(c, half(all), front(all), sum, 1);
          },
          {"reduce", "overlap", "same buffer"});
  refused(3,
          [&](comm& c) {
            numbers all(9);
            all_to_all<std::int32_t>(c, half(all), {}, front(all), {});
          },
          {"all_to_all", "overlap", "same buffer"});
}

/// Block r of the whole is the one place inside it that rank r may use for its part.
TEST(buffers, that_are_another_block_are_refused) {
  auto const other = [](comm& c) { return static_cast<std::size_t>((c.rank() + 1) % c.size()) * 2; };
  refused(3,
          [&](comm& c) {
            numbers all(6);
            reduce_scatter<std::int32_t>(c, all, std::span(all).subspan(other(c), 2), {}, sum);
          },
          {"reduce_scatter", "block"});
  refused(3,
          [&](comm& c) {
            numbers all(6);
            all_gather<std::int32_t>(c, std::span(all).subspan(other(c), 2), all);
          },
          {"all_gather", "block"});
  refused(3,
          [&](comm& c) {
            numbers all(6);
            gather<std::int32_t>(c, std::span(all).subspan(other(c), 2), all, c.rank());
          },
          {"gather", "block"});
  refused(3,
          [&](comm& c) {
            numbers all(6);
            scatter<std::int32_t>(c, all, std::span(all).subspan(other(c), 2), c.rank());
          },
          {"scatter", "block"});
}

/// Addresses that belong to nothing the processor reaches, as those of a device do.
class out_of_reach {
 public:
  out_of_reach() : pages_(::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~out_of_reach() { ::munmap(pages_, bytes); }
  out_of_reach(out_of_reach const&) = delete;
  out_of_reach& operator=(out_of_reach const&) = delete;

  template <class T = std::int32_t>
  std::span<T> first(std::size_t count) const {
    return {static_cast<T*>(pages_), count};
  }

 private:
  static constexpr std::size_t bytes = std::size_t{1} << 20;
  void* pages_;
};

TEST(buffers, that_the_processor_does_not_reach_are_refused) {
  out_of_reach const far;
  std::vector<std::string_view> const words{"cannot read", "copy memory of a device to the host"};
  for (std::size_t const count : {std::size_t{1}, std::size_t{30'000}}) {
    auto const some = far.first(count), all = far.first(3 * count);
    std::span<std::int32_t> const nowhere(static_cast<std::int32_t*>(nullptr), count);
    refused(
        3, [&](comm& c) { all_reduce<std::int32_t>(c, nowhere, nowhere, sum); }, words);
    refused(
        3, [&](comm& c) { broadcast<std::int32_t>(c, nowhere, 1); }, words);
    refused(
        3, [&](comm& c) { all_reduce<std::int32_t>(c, some, some, sum); }, words);
    refused(
        3, [&](comm& c) { all_reduce<std::int32_t>(c, some, room(count), sum); }, words);
    refused(
        3, [&](comm& c) { all_reduce<std::int32_t>(c, room(count), some, sum); }, words);
    refused(
        3, [&](comm& c) { reduce<std::int32_t>(c, some, room(count), sum, 1); }, words);
    refused(
        3, [&](comm& c) { reduce_scatter<std::int32_t>(c, all, room(count), {}, sum); }, words);
    refused(
        3, [&](comm& c) { reduce_scatter<std::int32_t>(c, room(3 * count), some, {}, sum); }, words);
    refused(
        3, [&](comm& c) { all_gather<std::int32_t>(c, some, room(3 * count)); }, words);
    refused(
        3, [&](comm& c) { all_gather<std::int32_t>(c, room(count), all); }, words);
    refused(
        3, [&](comm& c) { all_to_all<std::int32_t>(c, all, {}, room(3 * count), {}); }, words);
    refused(
        3, [&](comm& c) { all_to_all<std::int32_t>(c, room(3 * count), {}, all, {}); }, words);
    refused(
        3, [&](comm& c) { broadcast<std::int32_t>(c, some, 1); }, words);
    refused(
        3, [&](comm& c) { gather<std::int32_t>(c, some, room(3 * count), 1); }, words);
    refused(
        3, [&](comm& c) { scatter<std::int32_t>(c, room(3 * count), some, 1); }, words);
    refused(
        3, [&](comm& c) { send<std::int32_t>(c, some, (c.rank() + 1) % 3); }, words);
    refused(
        3, [&](comm& c) { receive<std::int32_t>(c, some, (c.rank() + 1) % 3); }, words);
  }
}

/// What only the root uses may be anything elsewhere.
TEST(buffers, that_a_rank_does_not_use_may_lie_anywhere) {
  out_of_reach const far;
  on_ranks(medium::tcp, 3, [&](comm& c) {
    numbers const one{c.rank()}, dealt{5, 6, 7};
    numbers all(3), mine(1);
    bool const root = c.rank() == 1;
    reduce<std::int32_t>(c, one, root ? std::span(mine) : far.first(1), sum, 1);
    if (root) { EXPECT_EQ(mine, numbers{3}); }
    gather<std::int32_t>(c, one, root ? std::span(all) : far.first(3), 1);
    if (root) { EXPECT_EQ(all, (numbers{0, 1, 2})); }
    scatter<std::int32_t>(c, root ? std::span<std::int32_t const>(dealt) : far.first(3), mine, 1);
    EXPECT_EQ(mine, numbers{5 + c.rank()});
  });
}

TEST(an_algorithm, that_does_not_offer_the_collective_is_refused) {
  refused(3, [](comm& c) { reduce<std::int32_t>(c, room(3), room(3), sum, 0, {.algorithm = algorithm::direct}); },
          {"direct", "reduce", "automatic"});
  refused(3, [](comm& c) { broadcast<std::int32_t>(c, room(3), 0, {.algorithm = algorithm::recursive_halving}); },
          {"recursive_halving", "broadcast", "automatic"});
  refused(3, [](comm& c) { barrier(c, {.algorithm = algorithm::ring}); }, {"ring", "barrier", "automatic"});
  refused(3, [](comm& c) { all_gather<std::int32_t>(c, room(1), room(3), {}, {.algorithm = algorithm::tree}); },
          {"tree", "all_gather", "automatic"});
}

TEST(an_algorithm, that_takes_shared_memory_is_refused_without) {
  on_ranks(medium::tcp, 3, [](comm& c) {
    numbers data{1};
    EXPECT_FALSE(c.offers(algorithm::direct, collective::all_reduce));
    EXPECT_THROW(all_reduce<std::int32_t>(c, data, data, sum, {.algorithm = algorithm::direct}), invalid_argument);
  });
}

TEST(an_algorithm, that_does_not_work_for_the_number_of_ranks_is_refused) {
  for (int const n : {3, 5})
    refused(
        n,
        [](comm& c) { all_reduce<std::int32_t>(c, room(3), room(3), sum, {.algorithm = algorithm::ordered_halving}); },
        {"ordered_halving", std::to_string(n) + " ranks", "another algorithm"});
}

TEST(a_refusal, leaves_the_buffers_as_they_were) {
  on_ranks(medium::in_process, 3, [](comm& c) {
    numbers in{1, 2, 3}, out{4, 5};
    EXPECT_THROW(all_reduce<std::int32_t>(c, in, out, premul_sum(2)), invalid_argument);
    EXPECT_THROW(all_reduce<std::int32_t>(c, in, in, premul_sum(2), {.algorithm = algorithm::ordered_halving}),
                 invalid_argument);
    EXPECT_THROW(all_gather<std::int32_t>(c, in, in, {}, {.algorithm = algorithm::tree}), invalid_argument);
    EXPECT_EQ(in, (numbers{1, 2, 3}));
    EXPECT_EQ(out, (numbers{4, 5}));
  });
}

/// A call that one rank alone may not make is refused there, before the others are disturbed.
TEST(a_refusal, on_one_rank_can_be_mended) {
  for (medium const where : media)
    on_ranks(where, 3, [](comm& c) {
      numbers data(10, c.rank() == 1 ? 5 : 0);
      if (c.rank() == 1) { EXPECT_THROW(broadcast<std::int32_t>(c, data, 7), invalid_argument); }
      broadcast<std::int32_t>(c, data, 1);
      EXPECT_EQ(data, numbers(10, 5));
    });
}

}  // namespace
