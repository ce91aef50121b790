#include "collectives.hpp"

#include <atomic>
#include <ostream>

// Every algorithm of every collective, exact against a closed form: in place and out of place, aligned and not, every
// root, with guards around every buffer.

namespace {

using namespace collectives_test;

struct setting {
  medium where;
  int ranks;
  collective what;
  algorithm how;

  friend std::ostream& operator<<(std::ostream& out, setting const& s) {
    return out << name_of(s.where) << " " << s.ranks << " " << to_string(s.what) << " " << to_string(s.how);
  }
};

struct call {
  std::size_t count;  ///< elements of the buffer, or of a block of it
  rank_t root = 0;
  bool in_place = false;
  std::size_t shift = 0;  ///< bytes
};

using value = std::int32_t;
using buffer = guarded<value>;
constexpr value untouched = 0x5a5a5a5a;

/// Element i of rank r, modulo 2^32; linear in r, so that the sum over ranks is known without adding.
value element(rank_t r, std::size_t i) {
  auto const rank = static_cast<std::uint32_t>(r);
  return static_cast<value>(static_cast<std::uint32_t>(mixed(i)) * (2 * rank + 1) + rank);
}
value sum_of(int n, std::size_t i) {
  auto const ranks = static_cast<std::uint32_t>(n);
  return static_cast<value>(static_cast<std::uint32_t>(mixed(i)) * ranks * ranks + ranks * (ranks - 1) / 2);
}

class attempt {
 public:
  attempt(comm& c, setting const& s, call const& k)
      : c_(c), s_(s), k_(k), how_{.algorithm = s.how}, n_(static_cast<std::size_t>(c.size())),
        r_(static_cast<std::size_t>(c.rank())) {}

  void run() const {
    using enum collective;
    switch (s_.what) {
      case all_reduce: return reduce_to_all();
      case reduce_scatter: return reduce_to_blocks();
      case all_gather: return gather_to_all();
      case broadcast: return send_from_root();
      case reduce: return reduce_to_root();
      case all_to_all: return exchange();
      case gather: return gather_to_root();
      case scatter: return deal_from_root();
      default: FAIL() << "not of this test";
    }
  }

 private:
  auto mine() const {
    return [r = c_.rank()](std::size_t i) { return element(r, i); };
  }
  auto total(std::size_t offset = 0) const {
    return [n = c_.size(), offset](std::size_t i) { return sum_of(n, offset + i); };
  }
  /// Block q is the contribution of rank q.
  auto blocks() const {
    return [count = k_.count](std::size_t i) { return element(static_cast<rank_t>(i / count), i % count); };
  }
  static value nothing(std::size_t) { return untouched; }
  bool is_root() const { return c_.rank() == k_.root; }

  template <class F>
  void expect(buffer const& b, F&& value_of, char const* which) const {
    std::string const wrong = b.wrong(value_of);
    EXPECT_EQ(wrong, "") << which << " of rank " << c_.rank() << ", count " << k_.count << ", root " << k_.root
                         << (k_.in_place ? ", in place" : "") << ", shift " << k_.shift;
  }

  void reduce_to_all() const {
    buffer in(k_.count, k_.shift), out(k_.count, k_.shift / 2);
    in.fill(mine());
    out.fill(nothing);
    collectives_test::all_reduce<value>(c_, in.all(), k_.in_place ? in.all() : out.all(), sum, how_);
    expect(k_.in_place ? in : out, total(), "result");
    if (!k_.in_place) expect(in, mine(), "input");
  }

  void reduce_to_blocks() const {
    buffer in(n_ * k_.count, k_.shift), out(k_.count, k_.shift / 2);
    in.fill(mine());
    out.fill(nothing);
    std::size_t const offset = r_ * k_.count;
    collectives_test::reduce_scatter<value>(c_, in.all(), k_.in_place ? in.part(offset, k_.count) : out.all(), {}, sum,
                                            how_);
    auto const after = [&](std::size_t i) {
      return k_.in_place && i >= offset && i < offset + k_.count ? sum_of(c_.size(), i) : element(c_.rank(), i);
    };
    expect(in, after, "input");
    if (!k_.in_place) expect(out, total(offset), "result");
  }

  void gather_to_all() const {
    buffer in(k_.count, k_.shift), out(n_ * k_.count, k_.shift / 2);
    in.fill(mine());
    out.fill(nothing);
    auto const own = out.part(r_ * k_.count, k_.count);
    if (k_.in_place && k_.count != 0) std::memcpy(own.data(), in.all().data(), own.size_bytes());
    collectives_test::all_gather<value>(c_, k_.in_place ? own : in.all(), out.all(), {}, how_);
    expect(out, blocks(), "result");
    expect(in, mine(), "input");
  }

  void send_from_root() const {
    buffer data(k_.count, k_.shift);
    data.fill(is_root() ? value_source{c_.rank()} : value_source{nobody});
    collectives_test::broadcast<value>(c_, data.all(), k_.root, how_);
    expect(data, value_source{k_.root}, "result");
  }

  void reduce_to_root() const {
    buffer in(k_.count, k_.shift), out(k_.count, k_.shift / 2);
    in.fill(mine());
    out.fill(nothing);
    collectives_test::reduce<value>(c_, in.all(), k_.in_place ? in.all() : out.all(), sum, k_.root, how_);
    if (!k_.in_place || !is_root()) expect(in, mine(), "input");
    if (is_root())
      expect(k_.in_place ? in : out, total(), "result");
    else
      expect(out, nothing, "output of another rank");
  }

  void exchange() const {
    buffer in(n_ * k_.count, k_.shift), out(n_ * k_.count, k_.shift / 2);
    in.fill(mine());
    out.fill(nothing);
    collectives_test::all_to_all<value>(c_, in.all(), {}, k_.in_place ? in.all() : out.all(), {}, how_);
    auto const dealt = [&](std::size_t i) {
      return element(static_cast<rank_t>(i / k_.count), r_ * k_.count + i % k_.count);
    };
    expect(k_.in_place ? in : out, dealt, "result");
    if (!k_.in_place) expect(in, mine(), "input");
  }

  void gather_to_root() const {
    buffer in(k_.count, k_.shift), out(n_ * k_.count, k_.shift / 2);
    in.fill(mine());
    out.fill(nothing);
    bool const inside = k_.in_place && is_root();
    auto const own = out.part(r_ * k_.count, k_.count);
    if (inside && k_.count != 0) std::memcpy(own.data(), in.all().data(), own.size_bytes());
    collectives_test::gather<value>(c_, inside ? own : in.all(), is_root() ? out.all() : std::span<value>{}, k_.root,
                                    how_);
    expect(in, mine(), "input");
    if (is_root())
      expect(out, blocks(), "result");
    else
      expect(out, nothing, "output of another rank");
  }

  void deal_from_root() const {
    buffer in(n_ * k_.count, k_.shift), out(k_.count, k_.shift / 2);
    in.fill(mine());
    out.fill(nothing);
    bool const inside = k_.in_place && is_root();
    std::size_t const offset = r_ * k_.count;
    collectives_test::scatter<value>(c_, is_root() ? in.all() : std::span<value>{},
                                     inside ? in.part(offset, k_.count) : out.all(), k_.root, how_);
    expect(in, mine(), "input");
    if (!inside)
      expect(
          out, [&](std::size_t i) { return element(k_.root, offset + i); }, "result");
  }

  struct value_source {
    rank_t rank;
    value operator()(std::size_t i) const { return rank == nobody ? untouched : element(rank, i); }
  };

  comm& c_;
  setting s_;
  call k_;
  call_options how_;
  std::size_t n_, r_;
};

bool rooted(collective what) {
  using enum collective;
  return what == broadcast || what == reduce || what == gather || what == scatter;
}

std::vector<call> small_calls(setting const& s) {
  std::vector<call> all;
  auto const n = static_cast<std::size_t>(s.ranks);
  std::size_t shift = 0;
  auto const add = [&](std::size_t count, rank_t root) {
    for (bool const in_place : {false, true}) all.push_back({count, root, in_place, shift++ % 8});
  };
  std::vector<std::size_t> sizes{0, 1, 2, n - 1, n, n + 1, 17, 1000, 4099};
  if (s.where != medium::in_process) sizes = {0, 1, n + 1, 4099};
  for (std::size_t const count : sizes) add(count, static_cast<rank_t>(count % n));
  if (rooted(s.what))
    for (rank_t root = 0; root < s.ranks; ++root) add(17, root), add(5000, root);
  return all;
}

/// Calls on one communicator one after the other, so that what one leaves behind meets the next.
void play(setting const& s, std::vector<call> const& calls) {
  on_ranks(s.where, s.ranks, [&](comm& c) {
    for (call const& k : calls) attempt(c, s, k).run();
  });
}

std::vector<setting> settings(std::vector<medium> const& where, std::vector<int> const& ranks) {
  std::vector<setting> all;
  for (medium const m : where)
    for (int const n : ranks)
      for (auto const& [what, name] : detail::collective_names)
        if (what != collective::barrier)
          for (algorithm const how : algorithms_for(what, n, m)) all.push_back({m, n, what, how});
  return all;
}

std::string name_of_matrix_case(testing::TestParamInfo<setting> const& info) {
  auto const& [where, ranks, what, how] = info.param;
  return name_of(where) + "_" + std::to_string(ranks) + "_" + std::string(to_string(what)) + "_by_" +
         std::string(to_string(how));
}

class every_algorithm : public testing::TestWithParam<setting> {};

TEST_P(every_algorithm, is_exact_for_small_buffers) { play(GetParam(), small_calls(GetParam())); }

INSTANTIATE_TEST_SUITE_P(between_threads, every_algorithm,
                         testing::ValuesIn(settings({medium::in_process}, {1, 2, 3, 4, 5, 7, 8})), name_of_matrix_case);
INSTANTIATE_TEST_SUITE_P(over, every_algorithm,
                         testing::ValuesIn(settings({medium::shm, medium::tcp, medium::multi}, {2, 3, 4})),
                         name_of_matrix_case);
INSTANTIATE_TEST_SUITE_P(between, every_algorithm, testing::ValuesIn(settings({medium::devices}, {3})),
                         name_of_matrix_case);

class every_large_algorithm : public testing::TestWithParam<setting> {};

/// Long enough for several segments and for every buffer of every transport to fill up.
TEST_P(every_large_algorithm, is_exact_for_large_buffers) {
  auto const& s = GetParam();
  using enum collective;
  bool const whole = s.what == all_reduce || s.what == broadcast || s.what == reduce;
  auto const n = static_cast<std::size_t>(s.ranks);
  std::size_t const large = s.where == medium::in_process ? 800'003 : 400'009;
  auto const count = [&](std::size_t total) { return whole ? total : total / n + 1; };
  play(s, {{count(65537), s.ranks - 1, true, 3}, {count(large), s.ranks / 2, false, 4}});
}

INSTANTIATE_TEST_SUITE_P(between_threads, every_large_algorithm,
                         testing::ValuesIn(settings({medium::in_process}, {2, 5})), name_of_matrix_case);
INSTANTIATE_TEST_SUITE_P(over, every_large_algorithm,
                         testing::ValuesIn(settings({medium::shm, medium::tcp, medium::multi, medium::devices}, {3})),
                         name_of_matrix_case);

class every_barrier : public testing::TestWithParam<std::tuple<medium, int>> {};

TEST_P(every_barrier, lets_nobody_go_before_all_have_come) {
  auto const [where, n] = GetParam();
  std::atomic<int> come{0};
  on_ranks(where, n, [&, n = n](comm& c) {
    for (int round = 1; round <= 50; ++round) {
      come.fetch_add(1);
      if (round % 2 == 0)
        barrier(c);
      else
        start_barrier(c).wait();
      EXPECT_GE(come.load(), n * round) << "rank " << c.rank();
      barrier(c);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(over, every_barrier,
                         testing::Combine(testing::ValuesIn(media), testing::Values(1, 2, 3, 4, 5, 7, 8)),
                         [](auto const& info) {
                           return name_of(std::get<0>(info.param)) + "_" + std::to_string(std::get<1>(info.param));
                         });

}  // namespace
