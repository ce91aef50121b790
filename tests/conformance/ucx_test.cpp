#include "transport_suite.hpp"
#include <rondo/transports/in_process_group.hpp>
#include <rondo/transports/ucx.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <functional>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace rondo::testing {
namespace {

template <std::size_t SlotBytes, int Window>
struct over_ucx {
  static constexpr bool notices_departure = true;

  template <class Body>
  static void world(int n, Body body) {
    auto const groups = in_process_group::make(n);
    on_ranks(n, [&](rank_t r) {
      ucx_options options;
      if (SlotBytes > 0) options = {.slot_bytes = SlotBytes, .window = Window};
      auto x = ucx::connect(groups[static_cast<std::size_t>(r)], options);
      body(r, x);
    });
  }
};

using backends = ::testing::Types<over_ucx<0, 0>, over_ucx<1024, 4>>;
INSTANTIATE_TYPED_TEST_SUITE_P(ucx, transport_suite, backends);

/// A group in which this rank tells the others something else than it was told to.
class misquoting final : public group {
 public:
  using edit = std::function<std::string(std::string)>;

  misquoting(std::shared_ptr<group> inner, edit e)
      : group(inner->rank(), inner->size()), inner_(std::move(inner)), edit_(std::move(e)) {}

  std::vector<std::string> exchange(std::string_view mine, clock::time_point deadline) override {
    return inner_->exchange(edit_(std::string(mine)), deadline);
  }
  std::shared_ptr<group> split(int color, int key, clock::time_point deadline) override {
    return inner_->split(color, key, deadline);
  }
  void report(failure why) noexcept override { inner_->report(why); }
  std::optional<std::uint64_t> departed(rank_t rank) const noexcept override { return inner_->departed(rank); }

 private:
  std::shared_ptr<group> inner_;
  edit edit_;
};

/// What connect() throws on each of two ranks, whose rank 1 has the options and says what `edit` makes of its words.
std::array<std::string, 2> refusals(misquoting::edit const& edit, ucx_options const& options = {}) {
  auto const groups = in_process_group::make(2);
  std::array<std::string, 2> texts;
  on_ranks(2, [&](rank_t r) {
    auto g = groups[static_cast<std::size_t>(r)];
    if (r == 1 && edit) g = std::make_shared<misquoting>(g, edit);
    try {
      ucx::connect(g, r == 1 ? options : ucx_options{});
    } catch (connect_error const& e) {
      EXPECT_EQ(e.rank(), 1);
      texts[static_cast<std::size_t>(r)] = e.what();
    }
  });
  return texts;
}

TEST(ucx, refuses_another_release_and_names_both) {
  auto const mine = detail::ucx_release();
  auto const texts = refusals([&](std::string text) { return "1.99.7" + text.substr(text.find(' ')); });
  EXPECT_EQ(texts[0],
            "rondo: rank 1 runs UCX 1.99.7, but rank 0 runs UCX " + mine + ": install the same release everywhere");
  EXPECT_EQ(texts[0], texts[1]);
}

TEST(ucx, refuses_other_settings_and_names_both) {
  auto const with = [](std::vector<std::string> settings) {
    return [settings](std::string const& text) {
      auto w = detail::ucx_wiring::decode(text, 1);
      w.settings = settings;
      return w.encode();
    };
  };
  auto const usual = detail::ucx_wiring::here();
  auto first = usual, last = usual;
  first.insert(first.begin(), "UCX_AAA=yes");
  last.push_back("UCX_ZZZ=no");
  EXPECT_NE(refusals(with(first))[0].find("rank 1 has UCX_AAA=yes, but rank 0 has no UCX_AAA:"), std::string::npos);
  EXPECT_NE(refusals(with(last))[1].find("rank 1 has UCX_ZZZ=no, but rank 0 has no UCX_ZZZ:"), std::string::npos);
  ::setenv("UCX_ZZZ", "maybe", 1);
  EXPECT_NE(refusals(with(last))[0].find("rank 1 has UCX_ZZZ=no, but rank 0 has UCX_ZZZ=maybe:"), std::string::npos);
  EXPECT_NE(refusals(with(usual))[1].find("rank 1 has no UCX_ZZZ, but rank 0 has UCX_ZZZ=maybe:"), std::string::npos);
  ::unsetenv("UCX_ZZZ");
}

TEST(ucx, refuses_other_options) {
  for (ucx_options const& other : {ucx_options{.slot_bytes = 128}, ucx_options{.window = 3}})
    for (auto const& text : refusals({}, other))
      EXPECT_NE(text.find("rank 1 has other ucx_options"), std::string::npos) << text;
}

TEST(ucx, refuses_options_out_of_range) {
  for (ucx_options const& wrong :
       {ucx_options{.slot_bytes = 0}, ucx_options{.slot_bytes = 100}, ucx_options{.slot_bytes = std::size_t{1} << 30}})
    for (auto const& text : refusals({}, wrong))
      EXPECT_NE(text.find("rank 1 cannot use UCX: slot_bytes"), std::string::npos) << text;
  for (int const window : {-1, 1, 1025})
    for (auto const& text : refusals({}, {.window = window}))
      EXPECT_NE(text.find("rank 1 cannot use UCX: window"), std::string::npos) << text;
}

TEST(ucx, refuses_words_that_no_rank_says) {
  for (auto const* const nonsense : {"", "1.13.1", "1.13.1 64 2 1\n", "1.13.1 64 2 x\naddress", "1.13.1 64 2 0\n"})
    for (auto const& text : refusals([&](auto const&) { return nonsense; }))
      EXPECT_NE(text.find("rank 1 sent a UCX address that cannot be read"), std::string::npos) << text;
}

TEST(ucx, refuses_a_library_older_than_the_headers) {
  EXPECT_NO_THROW(detail::demand_ucx(UCP_API_MAJOR, UCP_API_MINOR));
  EXPECT_NO_THROW(detail::demand_ucx(UCP_API_MAJOR + 1, 0));
  EXPECT_THROW(detail::demand_ucx(UCP_API_MAJOR, UCP_API_MINOR - 1), connect_error);
}

TEST(ucx, accepts_just_a_window_for_a_peer_that_does_not_read) {
  std::latch read(1);
  over_ucx<1024, 4>::world(2, [&](rank_t r, auto& x) {
    auto const block = stream(1, 10'000);
    if (r == 0) {
      std::size_t accepted = 0;
      for (int i = 0; i < 10; ++i) {
        accepted += x.write(1, std::span(block).subspan(accepted), false);
        x.wait(std::chrono::milliseconds(5));
      }
      EXPECT_EQ(accepted, 4u * 1024);
      read.count_down();
      send(x, 1, std::span(block).subspan(accepted));
      receive(x, 1, 1);
    } else {
      read.wait();
      EXPECT_EQ(receive(x, 0, block.size()), block);
      send(x, 0, stream(0, 1));
    }
  });
}

TEST(ucx, leaves_soon_even_if_nobody_looks) {
  using namespace std::chrono;
  std::latch gone(1);
  over_ucx<1024, 4>::world(2, [&](rank_t r, auto& x) {
    if (r == 1) return gone.wait();
    x.write(1, stream(1, 10'000), false);
    auto const start = steady_clock::now();
    { auto const leaving = std::move(x); }
    EXPECT_LT(steady_clock::now() - start, milliseconds(500));
    gone.count_down();
  });
}

TEST(ucx, is_left_alone_by_a_forked_child) {
  over_ucx<0, 0>::world(2, [](rank_t r, auto& x) {
    exchange(x, {1 - r}, stream(0, 1000));
    if (r == 0) {
      ::pid_t const child = ::fork();
      if (child == 0) {
        { auto const inherited = std::move(x); }
        ::_exit(0);
      }
      int status = -1;
      EXPECT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
    }
    EXPECT_EQ(exchange(x, {1 - r}, stream(static_cast<unsigned>(r), 100'000))[0],
              stream(static_cast<unsigned>(1 - r), 100'000));
  });
}

TEST(ucx, leaves_the_signals_of_crashes_to_the_program) {
  over_ucx<0, 0>::world(1, [](rank_t, auto&) {
    for (int const number : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) {
      struct sigaction now {};
      ASSERT_EQ(::sigaction(number, nullptr, &now), 0);
      Dl_info owner{};
      bool const taken = ::dladdr(reinterpret_cast<void*>(now.sa_sigaction), &owner) && owner.dli_fname &&
                         std::string(owner.dli_fname).find("libucs") != std::string::npos;
      EXPECT_FALSE(taken) << number;
    }
  });
}

}  // namespace
}  // namespace rondo::testing
