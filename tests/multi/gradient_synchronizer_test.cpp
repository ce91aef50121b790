#include "gradient.hpp"
#include <rondo/gradient/synchronizer.hpp>

#include <array>
#include <atomic>
#include <cmath>
#include <deque>
#include <limits>
#include <mutex>
#include <numeric>
#include <thread>

namespace {

using namespace gradient_test;

constexpr std::byte guard{0xa5};

/// Tensors of all types and awkward sizes, with guard bytes around gradients, and what each rank puts into them.
class mixed_model {
 public:
  explicit mixed_model(rank_t rank) : rank_(rank) {
    add<float>(1000), add<double>(333), add<float16>(77), add<bfloat16>(1), add<float>(0), add<double>(1500);
    add<float16>(2049), add<float>(5), add<bfloat16>(640);
  }

  std::vector<parameter> parameters() const { return parameters_; }

  /// Gradients that each rank, step and place has its own of; a rank without data has garbage.
  void fill(int step, bool garbage) {
    for (std::size_t id = 0; id < parameters_.size(); ++id)
      with_real(parameters_[id].gradient_type, [&]<class T>(std::type_identity<T>) {
        for (std::size_t i = 0; i < parameters_[id].count; ++i)
          static_cast<T*>(parameters_[id].gradient)[i] =
              garbage ? std::numeric_limits<T>::quiet_NaN()
                      : static_cast<T>(static_cast<float>(value(rank_, step, id, i)));
      });
  }

  /// Compares with the weighted mean, computed in long double from what each rank has put in.
  void check(int step, std::span<double const> weights) {
    for (std::size_t id = 0; id < parameters_.size(); ++id)
      with_real(parameters_[id].gradient_type, [&]<class T>(std::type_identity<T>) {
        for (std::size_t i = 0; i < parameters_[id].count; ++i) {
          long double sum = 0, size = 0, total = 0;
          for (std::size_t r = 0; r < weights.size(); ++r) {
            if (weights[r] == 0) continue;
            long double const g = static_cast<accumulator_t<T>>(
                static_cast<T>(static_cast<float>(value(static_cast<rank_t>(r), step, id, i))));
            sum += weights[r] * g;
            size += weights[r] * std::abs(g);
            total += weights[r];
          }
          // A product, the sums, the divisor and the quotient, each rounded in the type that is added in; then T.
          long double const rounds = static_cast<long double>(weights.size()) + 3;
          long double const mean = total == 0 ? 0 : sum / total;
          long double const bound =
              (total == 0 ? 0
                          : rounds * static_cast<long double>(std::numeric_limits<accumulator_t<T>>::epsilon()) / 2 *
                                size / total) +
              std::abs(mean) * static_cast<long double>(static_cast<double>(std::numeric_limits<T>::epsilon())) / 2;
          auto const got = static_cast<long double>(
              static_cast<accumulator_t<T>>(static_cast<T const*>(parameters_[id].gradient)[i]));
          ASSERT_LE(std::abs(got - mean), bound) << parameters_[id].text() << " at " << i;
        }
      });
    for (auto const& block : memory_) {
      ASSERT_EQ(std::count(block.begin(), block.begin() + margin, guard), margin);
      ASSERT_EQ(std::count(block.end() - margin, block.end(), guard), margin);
    }
  }

  void expect_same(comm& c) const {
    for (auto const& block : memory_) expect_same_bits(c, block);
  }

 private:
  static constexpr std::ptrdiff_t margin = 64;

  static double value(rank_t rank, int step, std::size_t id, std::size_t i) {
    std::uint64_t const x = (i + 1) * 0x9e3779b97f4a7c15U ^ (id + 1) * 0xbf58476d1ce4e5b9U ^
                            static_cast<std::uint64_t>(rank * 31 + step) * 0x94d049bb133111ebU;
    return static_cast<double>((x ^ x >> 29) * 0xbf58476d1ce4e5b9U >> 11) * 0x1p-52 - 1;
  }

  template <class T>
  void add(std::size_t count) {
    auto& block = memory_.emplace_back(2 * margin + count * sizeof(T), guard);
    auto& values = values_.emplace_back(count * sizeof(T));
    std::span const v(reinterpret_cast<T*>(values.data()), count);
    std::span const g(reinterpret_cast<T*>(block.data() + margin), count);
    parameters_.emplace_back("t" + std::to_string(parameters_.size()), v, g);
  }

  rank_t rank_;
  std::deque<std::vector<std::byte>> memory_, values_;
  std::vector<parameter> parameters_;
};

/// Calls ready() for all, in an order that is the rank's own, from two threads.
template <class Step>
void all_ready(Step& step, std::size_t parameters, std::uint64_t seed) {
  auto const order = shuffled(parameters, seed);
  std::atomic<std::size_t> next{0};
  auto const some = [&] {
    for (std::size_t i; (i = next++) < order.size();) step.ready(order[i]);
  };
  std::jthread const other(some);
  some();
}

TEST(synchronizer, gives_the_weighted_mean_of_every_type) {
  std::vector<std::vector<double>> const weights = {
      {1, 1, 1, 1, 1}, {3, 0, 8, 1, 2.5}, {0, 0, 7, 0, 0}, {0, 0, 0, 0, 0}};
  for (int const ranks : {1, 2, 3, 5})
    for (std::size_t const bytes : {std::size_t{4} << 10, std::size_t{25} << 20})
      on_ranks(ranks, [&](comm& c) {
        mixed_model model(c.rank());
        synchronizer sync(c, model.parameters(), {.buckets = {.first = 1 << 10, .most = bytes}});
        for (int step = 0; step < 4; ++step) {
          auto const used = std::span(weights[static_cast<std::size_t>(step)]).first(static_cast<std::size_t>(ranks));
          double const mine = used[static_cast<std::size_t>(c.rank())];
          model.fill(step, mine == 0);
          auto under_way = sync.begin({.weight = mine});
          if (mine != 0)
            all_ready(under_way, sync.parameters().size(), static_cast<std::uint64_t>(31 * c.rank() + step));
          auto const report = under_way.finish();
          EXPECT_EQ(report.weight, std::accumulate(used.begin(), used.end(), 0.0));
          EXPECT_TRUE(report.finite);
          model.check(step, used);
          model.expect_same(c);
        }
      });
}

/// The losses of `steps` steps with a global batch of 12 samples.
template <class T>
std::vector<T> losses(int ranks, gradient_options options, int steps, bool backwards) {
  std::vector<T> curve;
  options.summed = true;
  on_ranks(ranks, [&](comm& c) {
    small_net<T> net;
    synchronizer sync(c, net.parameters(), options);
    for (int k = 0; k < steps; ++k) {
      net.clear();
      std::array<T, 1> loss{};
      constexpr int batch = 12;
      int const from = batch * c.rank() / c.size(), to = batch * (c.rank() + 1) / c.size();
      for (int s = from; s < to; ++s) loss[0] += net.sample(static_cast<std::uint64_t>(100 * k + s));
      auto step = sync.begin({.weight = static_cast<double>(to - from)});
      for (std::size_t i = 0; i < 4; ++i) step.ready(backwards ? 3 - i : (i + static_cast<std::size_t>(c.rank())) % 4);
      step.finish();
      net.descend(T(0.01));
      net.each([&](auto const& values, auto const&) { expect_same_bits(c, std::as_bytes(std::span(values))); });
      c.all_reduce(loss, sum);
      if (c.rank() == 0) curve.push_back(loss[0] / batch);
    }
  });
  return curve;
}

/// The greatest relative difference of the losses of some ranks from those of one with the same batch, of all numbers
/// of ranks, sizes of buckets and orders.
template <class T>
double greatest_difference() {
  auto const alone = losses<T>(1, {}, 8, true);
  EXPECT_LT(alone.back(), 0.9 * alone.front()) << "it must learn for the comparison to mean something";
  double worst = 0;
  for (int const ranks : {2, 3, 4})
    for (std::size_t const bytes : {std::size_t{4} << 10, std::size_t{1} << 20, std::size_t{25} << 20})
      for (bool const overlap : {false, true})
        for (bool const backwards : {false, true}) {
          gradient_options const options{.buckets = {.first = std::min<std::size_t>(bytes, 1 << 20), .most = bytes},
                                         .overlap = overlap};
          auto const together = losses<T>(ranks, options, 8, backwards);
          for (std::size_t k = 0; k < alone.size(); ++k)
            worst = std::max(worst, static_cast<double>(std::abs(together.at(k) - alone[k]) / alone[k]));
        }
  return worst;
}

TEST(synchronizer, some_ranks_lose_what_one_does_in_double) {
  double const worst = greatest_difference<double>();
  RecordProperty("apart_by", std::to_string(worst * 0x1p53) + " x 2^-53");
  EXPECT_LE(worst, 1e-12);
}

TEST(synchronizer, some_ranks_lose_what_one_does_in_float) {
  double const worst = greatest_difference<float>();
  RecordProperty("apart_by", std::to_string(worst * 0x1p24) + " x 2^-24");
  EXPECT_LE(worst, 64 * 0x1p-24) << "the bound of docs/explanation/overlap.md";
}

TEST(synchronizer, means_of_float16_neither_overflow_nor_vanish) {
  on_ranks(4, [](comm& c) {
    std::vector<float16> values(3), gradient{float16(60000.0F), float16(6e-8F), float16(-1.5F)};
    auto const before = gradient;
    synchronizer sync(c, {{"w", values, gradient}});
    auto step = sync.begin({.weight = 1000});
    step.ready(0);
    step.finish();
    EXPECT_EQ(std::memcmp(gradient.data(), before.data(), sizeof(float16) * 3), 0);
  });
}

TEST(synchronizer, clips_by_the_norm_of_all_gradients_and_takes_the_loss_scale_back) {
  on_ranks(3, [](comm& c) {
    std::vector<float> a(2), b(1), da{3.0F * 256, 0}, db{4.0F * 256};
    std::vector<parameter> const both{{"a", a, da}, {"b", b, db}};
    synchronizer sync(c, both, {.buckets = {.first = 1, .most = 1}, .max_norm = 2.5});
    auto step = sync.begin({.loss_scale = 256});
    step.ready(1);
    step.ready(0);
    auto const report = step.finish();
    EXPECT_NEAR(report.norm, 5, 1e-12);
    EXPECT_NEAR(report.clip, 0.5, 1e-6);
    EXPECT_NEAR(da[0], 1.5, 1e-5);
    EXPECT_NEAR(db[0], 2, 1e-5);
    EXPECT_TRUE(report.finite);
  });
}

TEST(synchronizer, finds_a_nan_or_an_infinity_of_one_rank_on_all) {
  on_ranks(3, [](comm& c) {
    std::vector<double> w(100), dw(100, 1e200);  // whose squares overflow
    synchronizer sync(c, {{"w", w, dw}});
    for (double const bad : {1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
      std::fill(dw.begin(), dw.end(), 1e200);
      if (c.rank() == 1) dw[57] = bad;
      auto step = sync.begin();
      step.ready(0);
      EXPECT_EQ(step.finish().finite, bad == 1.0);
    }
  });
}

TEST(synchronizer, names_the_gradient_that_did_not_come_and_goes_on) {
  on_ranks(3, [](comm& c) {
    small_net<float> net;
    synchronizer sync(c, net.parameters());
    for (int round = 0; round < 2; ++round) {
      auto step = sync.begin();
      for (std::size_t id = 0; id < 4; ++id)
        if (c.rank() != 2 || id != 1) step.ready(id);
      auto const said = message_of<invalid_argument>([&] { step.finish(); });
      expect_says(said, "'b'");
      expect_says(said, "rank 2");
    }
    auto step = sync.begin();
    for (std::size_t id = 0; id < 4; ++id) step.ready(id);
    step.finish();
  });
}

TEST(synchronizer, unused_parameters_count_as_zero_and_are_left_alone_where_nobody_uses_them) {
  on_ranks(3, [](comm& c) {
    std::vector<float> a(5), b(5), d(5), da(5, 3), db(5, 42), dd(5, 6);
    std::vector<parameter> const all{{"a", a, da}, {"b", b, db}, {"d", d, dd}};
    synchronizer sync(c, all, {.allow_unused = true});
    auto step = sync.begin();
    step.ready(0);
    if (c.rank() == 1) step.ready(2);
    step.finish();
    EXPECT_EQ(da, std::vector<float>(5, 3));
    EXPECT_EQ(db, std::vector<float>(5, 42));
    EXPECT_EQ(dd, std::vector<float>(5, 2));
    EXPECT_EQ(sync.users(0), 3U);
    EXPECT_EQ(sync.users(1), 0U);
    EXPECT_EQ(sync.users(2), 1U);
  });
}

TEST(synchronizer, names_the_first_parameter_that_ranks_disagree_about) {
  on_ranks(3, [](comm& c) {
    std::vector<float> w(c.rank() == 2 ? 11 : 10), v(4);
    auto const wrong_size = message_of<invalid_argument>([&] {
      std::vector<parameter> const both{{"v", v}, {"w", w}};
      synchronizer(c, both);
    });
    expect_says(wrong_size, "in place 1 rank 2 has parameter 'w' (float32, 11 elements), but rank 0 has parameter 'w' "
                            "(float32, 10 elements)");
    auto const one_more = message_of<invalid_argument>([&] {
      std::vector<parameter> some{{"v", v}};
      if (c.rank() == 1) some.emplace_back("x", v);
      synchronizer(c, some);
    });
    expect_says(one_more, "rank 1 has parameter 'x'");
    expect_says(one_more, "rank 0 has none");
    auto const options = message_of<invalid_argument>([&] {
      synchronizer(c, {{"v", v}}, {.max_norm = c.rank() == 0 ? 1.0 : 2.0});
    });
    expect_says(options, "rank 1 synchronises with other options");
  });
}

TEST(synchronizer, values_are_those_of_the_root_and_a_difference_is_named) {
  on_ranks(3, [](comm& c) {
    std::vector<float> v(1000, static_cast<float>(c.rank()));
    std::vector<bfloat16> w(7, bfloat16(static_cast<float>(c.rank())));
    std::vector<parameter> const both{{"v", v}, {"w", w}};
    synchronizer sync(c, both);
    expect_says(message_of<error>([&] { sync.check_values(); }), "rank 1 holds other values of parameter 'v'");
    sync.broadcast_values(2);
    sync.check_values();
    EXPECT_EQ(v, std::vector<float>(1000, 2));
    if (c.rank() == 2) w[6] = bfloat16(1.0F);
    expect_says(message_of<error>([&] { sync.check_values(); }), "rank 2 holds other values of parameter 'w'");
  });
}

TEST(synchronizer, steps_that_do_not_synchronise_count_for_the_next) {
  on_ranks(2, [](comm& c) {
    std::vector<float> w(100), dw(100);
    synchronizer sync(c, {{"w", w, dw}}, {.summed = true});
    for (int round = 0; round < 2; ++round) {
      std::fill(dw.begin(), dw.end(), 0.0F);
      for (int micro = 0; micro <= c.rank(); ++micro) {  // rank 0 has one, rank 1 two of them
        for (float& g : dw) g += 12;
        auto step = sync.begin({.weight = 4, .synchronize = micro == c.rank()});
        step.ready(0);
        step.finish();
      }
      EXPECT_EQ(dw, std::vector<float>(100, 3));
    }
  });
}

TEST(synchronizer, gradients_may_lie_in_the_bucket) {
  on_ranks(3, [](comm& c) {
    std::vector<bfloat16> a(100);
    std::vector<double> b(33);
    std::vector<parameter> const both{{"a", a}, {"b", b}};
    synchronizer sync(c, both);
    auto const da = sync.gradient<float>(0);
    auto const db = sync.gradient<double>(1);
    EXPECT_THROW(sync.gradient<bfloat16>(0), invalid_argument);
    std::fill(da.begin(), da.end(), static_cast<float>(c.rank()));
    std::fill(db.begin(), db.end(), static_cast<double>(c.rank()));
    auto step = sync.begin({.weight = static_cast<double>(c.rank())});
    if (c.rank() != 0) step.ready(0), step.ready(1);
    step.finish();
    for (float const g : da) EXPECT_EQ(g, 5.0F / 3.0F);
    for (double const g : db) EXPECT_EQ(g, 5.0 / 3.0);
  });
}

TEST(synchronizer, refuses_what_makes_no_sense) {
  on_ranks(1, [](comm& c) {
    std::vector<float> w(10), dw(10), half(5);
    EXPECT_THROW(synchronizer(c, {}), invalid_argument);
    EXPECT_THROW(synchronizer(c, {{"w", w, half}}), invalid_argument);
    synchronizer sync(c, {{"w", w, dw}});
    for (double const weight : {-1.0, std::nan("")})
      EXPECT_THROW((void)sync.begin({.weight = weight}), invalid_argument);
    auto step = sync.begin();
    EXPECT_THROW((void)sync.begin(), invalid_argument);
    EXPECT_THROW(step.ready(1), invalid_argument);
    step.ready(0);
    expect_says(message_of<invalid_argument>([&] { step.ready(0); }), "'w'");
    step.finish();
    EXPECT_THROW(step.ready(0), invalid_argument);
    EXPECT_THROW(step.finish(), invalid_argument);
  });
}

TEST(synchronizer, a_hook_takes_the_place_of_the_all_reduce_and_its_error_ends_the_step) {
  on_ranks(3, [](comm& c) {
    std::vector<float> v(3000), dv(3000, static_cast<float>(c.rank()));
    std::vector<double> w(3), dw(3);
    synchronizer sync(c, {{"v", v, dv}}, {.buckets = {.first = 1000, .most = 1000}});
    std::size_t tensors = 0;
    sync.reduce_with([&](comm& own, gradient_bucket<float> b) {
      tensors += b.tensors.size();
      std::vector<int> rounded(b.values.begin(), b.values.end());
      own.all_reduce(rounded, sum);
      std::copy(rounded.begin(), rounded.end(), b.values.begin());
    });
    auto step = sync.begin({.weight = 2});
    step.ready(0);
    EXPECT_EQ(step.finish().weight, 6);
    EXPECT_EQ(dv, std::vector<float>(3000, 1));
    EXPECT_EQ(tensors, 1U);

    synchronizer doubles(c, {{"w", w, dw}});
    EXPECT_THROW(doubles.reduce_with([](comm&, gradient_bucket<float>) {}), invalid_argument);

    sync.reduce_with([&](comm& own, gradient_bucket<float> b) {
      if (own.rank() == 1) throw std::runtime_error("out of order");
      own.all_reduce(b.values, sum);
    });
    auto const give_up = [&] {
      auto broken = sync.begin();
      broken.ready(0);
      broken.finish();
    };
    expect_says(message_of<std::runtime_error>(give_up), c.rank() == 1 ? "out of order" : "rank 1 gave up a step");
  });
}

TEST(synchronizer, what_a_hook_leaves_behind_the_last_tensor_is_gone) {
  on_ranks(2, [](comm& c) {
    std::vector<float> v(5), dv(5, 3.0F);
    synchronizer sync(c, {{"v", v, dv}});
    sync.reduce_with([&](comm&, gradient_bucket<float> b) {
      ASSERT_GT(b.values.size(), 5U);
      for (std::size_t i = 5; i < b.values.size(); ++i) ASSERT_EQ(b.values[i], 0) << i;
      std::fill(b.values.begin(), b.values.end(), 8.0F);
    });
    for (int k = 0; k < 2; ++k) {
      auto step = sync.begin();
      step.ready(0);
      EXPECT_NEAR(step.finish().norm, 4 * std::sqrt(5.0), 1e-6);
    }
  });
}

TEST(synchronizer, a_report_adds_up_and_names_who_was_late) {
  on_ranks(3, [](comm& c) {
    small_net<float> net;
    synchronizer sync(c, net.parameters(), {.buckets = {.first = 1, .most = 1}});
    for (int k = 0; k < 4; ++k) {
      auto const before = std::chrono::steady_clock::now();
      auto step = sync.begin();
      for (std::size_t id = 4; id-- > 0;) {
        if (c.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        step.ready(id);
      }
      auto const report = step.finish();
      std::chrono::duration<double> const wall = std::chrono::steady_clock::now() - before;
      EXPECT_NEAR(report.wall() / wall, 1, 0.05);
      EXPECT_EQ(report.slowest, 1);
      EXPECT_GT(report.behind.count(), 0.05);
      EXPECT_EQ(report.own.size(), 3U);
      if (c.rank() != 1) { EXPECT_GT(report.exposed.count(), 0.05); }
      EXPECT_GE(report.bytes, sizeof(float) * 1208);
    }
    EXPECT_EQ(sync.stragglers().slowest(), 1);
    EXPECT_EQ(sync.stragglers().ranks()[1].slowest, 4U);
    expect_says(sync.stragglers().text(), "rank 1 is");
  });
}

TEST(synchronizer, a_backward_pass_that_throws_ends_the_step_of_all_at_once) {
  on_ranks(3, [](comm& c) {
    small_net<float> net;
    {
      synchronizer sync(c, net.parameters());
      auto const train = [&] {
        auto step = sync.begin();
        for (std::size_t id = 4; id-- > 0;) {
          if (c.rank() == 2 && id == 0) throw std::runtime_error("no memory");
          step.ready(id);
        }
        step.finish();
      };
      auto const start = std::chrono::steady_clock::now();
      expect_says(message_of<std::runtime_error>(train), c.rank() == 2 ? "no memory" : "rank 2 gave up a step");
      EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5)) << "long before the deadline";
      EXPECT_THROW((void)sync.begin(), invalid_argument);
    }
    c.barrier();  // the communicator of the trainer goes on
  });
}

}  // namespace
