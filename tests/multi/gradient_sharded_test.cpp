#include "gradient.hpp"
#include <rondo/fused/adamw.hpp>
#include <rondo/fused/sgd.hpp>
#include <rondo/gradient/sharded.hpp>
#include <rondo/gradient/synchronizer.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

namespace {

using namespace gradient_test;

constexpr adamw rule{.learning_rate = 0.01, .weight_decay = 0.1};

/// The gradients of this rank's share of a global batch of 10.
template <class Net>
double learn(Net& net, rank_t rank, int ranks, int k) {
  net.clear();
  constexpr int batch = 10;
  int const from = batch * rank / ranks, to = batch * (rank + 1) / ranks;
  for (int s = from; s < to; ++s) net.sample(static_cast<std::uint64_t>(100 * k + s));
  return to - from;
}

/// AdamW as anybody would write it, on all weights of a rank.
class whole_adamw {
 public:
  explicit whole_adamw(std::span<parameter const> parameters) {
    for (auto const& p : parameters) mean_.emplace_back(p.count), square_.emplace_back(p.count);
  }
  void step(std::span<parameter const> parameters) {
    auto const update = rule.at(++steps_);
    for (std::size_t id = 0; id < parameters.size(); ++id) {
      auto* const w = static_cast<float*>(parameters[id].values);
      auto const* const g = static_cast<float const*>(parameters[id].gradient);
      for (std::size_t i = 0; i < parameters[id].count; ++i) update(g[i], w[i], mean_[id][i], square_[id][i]);
    }
  }

 private:
  std::vector<std::vector<float>> mean_, square_;
  std::uint64_t steps_ = 0;
};

void expect_equal(small_net<float>& a, small_net<float>& b) {
  EXPECT_EQ(a.B, b.B);
  EXPECT_EQ(a.b, b.b);
  EXPECT_EQ(a.A, b.A);
  EXPECT_EQ(a.a, b.a);
}

TEST(sharded_optimizer, has_the_bits_of_an_unsharded_one_where_sums_are_ordered) {
  for (int const ranks : {1, 2, 3, 4, 5})
    on_ranks(
        ranks,
        [&](comm& c) {
          small_net<float> whole, parts;
          gradient_options const options{.buckets = {.first = 256, .most = 1 << 11}, .summed = true, .max_norm = 0.5};
          synchronizer sync(c, whole.parameters(), options);
          sharded_optimizer sharded(c, parts.parameters(), rule, options);
          whole_adamw unsharded(sync.parameters());
          for (int k = 0; k < 6; ++k) {
            double const weight = learn(whole, c.rank(), ranks, k);
            auto first = sync.begin({.weight = weight});
            for (std::size_t id : shuffled(4, static_cast<std::uint64_t>(k + c.rank()))) first.ready(id);
            auto const expected = first.finish();
            unsharded.step(sync.parameters());

            learn(parts, c.rank(), ranks, k);
            auto second = sharded.begin({.weight = weight});
            for (std::size_t id : shuffled(4, static_cast<std::uint64_t>(k + 7 * c.rank()))) second.ready(id);
            auto const got = second.finish();
            EXPECT_EQ(got.norm, expected.norm);
            EXPECT_EQ(got.clip, expected.clip);
            EXPECT_LT(got.clip, 1) << "or the test would not see whether clipping has the same bits";
            EXPECT_EQ(got.weight, 10);
            expect_equal(whole, parts);
          }
          sharded.check_values();
          std::size_t const all = 3 * sizeof(float) * 1208, n = static_cast<std::size_t>(ranks);
          std::size_t const padding = sharded.plan().buckets().size() * 16 * n * 3 * sizeof(float);
          EXPECT_LE(sharded.state_bytes(), (all + padding) / n) << "weights and two moments, a rank's part";
        },
        true);
}

TEST(sharded_optimizer, narrow_values_are_rounded_once_from_full_weights) {
  on_ranks(3, [](comm& c) {
    std::vector<bfloat16> w(101, bfloat16(1.0F)), dw(101, bfloat16(1.0F));
    std::vector<float16> v(7, float16(1.0F));
    std::vector<float> dv(7, 1.0F);
    std::vector<parameter> const both{{"w", w, dw}, {"v", v, dv}};
    sharded_optimizer descent(c, both, sgd{.learning_rate = 0x1p-12});
    for (int k = 0; k < 64; ++k) {  // one such step is less than half an ulp of a bfloat16 at 1
      std::fill(dw.begin(), dw.end(), bfloat16(1.0F));
      std::fill(dv.begin(), dv.end(), 1.0F);
      auto step = descent.begin();
      step.ready(0);
      step.ready(1);
      step.finish();
    }
    for (auto const value : w) EXPECT_EQ(static_cast<float>(value), static_cast<float>(bfloat16(1 - 0x1p-6F)));
    for (auto const value : v) EXPECT_EQ(static_cast<float>(value), 1 - 0x1p-6F);
  });
}

/// A rule of a user's: any state, any arithmetic.
struct halve {
  static constexpr std::size_t moments = 1;
  float by = 2;
  struct update {
    float by;
    void operator()(float gradient, float& weight, float& count) const noexcept {
      weight = weight / by + gradient;
      count += 1;
    }
  };
  update at(std::uint64_t) const noexcept { return {by}; }
};

TEST(sharded_optimizer, takes_a_rule_of_the_user_and_skips_what_is_not_finite) {
  on_ranks(3, [](comm& c) {
    std::vector<float> w(50, 8), dw(50);
    sharded_optimizer halving(c, {{"w", w, dw}}, halve{});
    for (float const g : {0.0F, std::numeric_limits<float>::infinity(), 1.0F}) {
      std::fill(dw.begin(), dw.end(), c.rank() == 1 || std::isfinite(g) ? g : 0.0F);
      auto step = halving.begin();
      step.ready(0);
      EXPECT_EQ(step.finish().finite, std::isfinite(g));
    }
    EXPECT_EQ(w, std::vector<float>(50, 3)) << "8 / 2 + 0, then nothing, then 4 / 2 + 1";
    EXPECT_EQ(halving.steps(), 2U);
  });
}

/// Trains on some ranks from a state, if there is one, and returns the state after that, and the weights.
std::pair<std::string, std::vector<float>> train(int ranks, int from, int to, std::string const& state) {
  std::pair<std::string, std::vector<float>> result;
  on_ranks(ranks, [&](comm& c) {
    small_net<float> net;
    gradient_options const options{.buckets = {.first = 256, .most = std::size_t{1} << (9 + ranks)}, .summed = true};
    sharded_optimizer adam(c, net.parameters(), rule, options);
    if (!state.empty()) {
      std::istringstream in(state);
      adam.load(in);
    }
    for (int k = from; k < to; ++k) {
      // Whole sums on rank 0, so that the number of ranks does not change their order.
      double const weight = learn(net, 0, 1, k);
      auto step = adam.begin({.weight = c.rank() == 0 ? weight : 0});
      if (c.rank() == 0)
        for (std::size_t id = 4; id-- > 0;) step.ready(id);
      step.finish();
    }
    EXPECT_EQ(adam.steps(), static_cast<std::uint64_t>(to));
    std::ostringstream out;
    adam.save(out, ranks - 1);
    if (c.rank() == ranks - 1) result = {out.str(), net.B};
  });
  return result;
}

TEST(sharded_optimizer, a_checkpoint_of_four_ranks_goes_on_with_three) {
  auto const half = train(4, 0, 4, "");
  auto const resumed = train(3, 4, 8, half.first), whole = train(4, 0, 8, "");
  EXPECT_EQ(resumed.second, whole.second);
  EXPECT_NE(resumed.second, half.second);
  auto const alone = train(1, 4, 8, half.first);
  EXPECT_EQ(alone.second, whole.second);
}

TEST(sharded_optimizer, a_checkpoint_that_does_not_fit_is_refused_on_all_ranks) {
  auto const state = train(2, 0, 2, "").first;
  auto const refused = [&](std::string const& bytes, std::string const& why, bool other_model = false) {
    on_ranks(2, [&](comm& c) {
      small_net<float> net;
      auto parameters = net.parameters();
      if (other_model) parameters[1].name = "bias";
      sharded_optimizer adam(c, parameters, rule);
      auto const before = net.B;
      std::istringstream in(c.rank() == 0 ? bytes : state);
      auto const said = message_of<error>([&] { adam.load(in); });
      if (c.rank() == 0 || other_model)
        expect_says(said, why);
      else
        expect_says(said, "rank 0 could not load");
      EXPECT_EQ(net.B, before);
      EXPECT_EQ(adam.steps(), 0U);
    });
  };
  refused(state.substr(0, state.size() - 1), "ends early");
  refused("nothing of the kind, but long enough to be one", "not a checkpoint");
  auto damaged = state;
  damaged[state.size() / 2] ^= 1;
  refused(damaged, "damaged");
  refused(state, "in the place of parameter 'bias'", true);
}

TEST(sharded_optimizer, refuses_doubles_and_names_a_gradient_that_did_not_come) {
  on_ranks(2, [](comm& c) {
    std::vector<double> d(5), dd(5);
    auto const said = message_of<invalid_argument>([&] { sharded_optimizer(c, {{"d", d, dd}}, rule); });
    expect_says(said, "'d'");
    small_net<float> net;
    auto const before = net.A;
    sharded_optimizer adam(c, net.parameters(), rule);
    auto step = adam.begin();
    for (std::size_t id = 0; id < 4; ++id)
      if (c.rank() == 0 || id != 2) step.ready(id);
    expect_says(message_of<invalid_argument>([&] { step.finish(); }), "'A'");
    EXPECT_EQ(net.A, before);
  });
}

}  // namespace
