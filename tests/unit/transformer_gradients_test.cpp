#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <transformer/model.hpp>

namespace {

using namespace transformer;

constexpr config shape{.vocabulary = 7, .time = 5, .width = 6, .heads = 2, .blocks = 2};
constexpr std::array<std::uint8_t, 10> tokens{0, 3, 6, 6, 1, 2, 2, 5, 0, 4}, following{3, 6, 6, 1, 2, 2, 5, 0, 4, 1};

/// A net whose gains, biases and weights are all far from 0 and 1, which would hide errors.
model<double> lively() {
  model<double> net(shape, 1);
  std::mt19937_64 random(5);
  for (double& v : net.values()) v += static_cast<double>(random() >> 11) * 0x1p-53 - 0.5;
  return net;
}

// Against central differences in double: the step is near the cube root of the precision, where their error is least.
TEST(transformer_gradients, are_the_slopes_of_the_loss_in_every_tensor) {
  auto net = lively();
  net.forward(tokens, following);
  net.backward();
  constexpr double nudge = 1e-5;
  std::vector<double> const gradient(net.gradient().begin(), net.gradient().end());
  std::size_t at = 0;
  net.each_tensor([&](std::string const& name, std::span<double> values, std::span<double>) {
    for (double& v : values) {
      double const here = v;
      v = here + nudge;
      double const above = net.forward(tokens, following);
      v = here - nudge;
      double const below = net.forward(tokens, following);
      v = here;
      ASSERT_NEAR(gradient[at], (above - below) / (2 * nudge), 2e-8) << name;
      ++at;
    }
  });
  EXPECT_EQ(at, gradient.size());
}

TEST(transformer_gradients, of_parts_of_a_batch_add_up_to_those_of_the_whole) {
  auto whole = lively(), parts = lively();
  double const loss = whole.forward(tokens, following);
  whole.backward();
  double sum = 0;
  for (std::size_t first : {0U, 5U}) {
    sum += parts.forward(std::span(tokens).subspan(first, 5), std::span(following).subspan(first, 5));
    parts.backward();
  }
  EXPECT_NEAR(sum, loss, 1e-12);
  for (std::size_t i = 0; i < whole.gradient().size(); ++i)
    ASSERT_NEAR(parts.gradient()[i], whole.gradient()[i], 1e-12);
}

TEST(transformer_gradients, no_position_sees_what_follows_it) {
  attention<double> const causal(6, 2, 5);
  matrix<double> qkv = matrix<double>::Random(18, 10);
  std::vector<matrix<double>> weights;
  matrix<double> const before = causal.forward(qkv, weights);
  qkv.col(3).setRandom();
  matrix<double> const after = causal.forward(qkv, weights);
  EXPECT_EQ(before.leftCols(3), after.leftCols(3));
  EXPECT_NE(before.col(3), after.col(3));
  EXPECT_NE(before.col(4), after.col(4));
  EXPECT_EQ(before.rightCols(5), after.rightCols(5)) << "the other sequence";
}

TEST(transformer_gradients, tensors_are_ready_once_each_the_last_part_first) {
  auto net = lively();
  std::vector<std::size_t> order;
  net.forward(tokens, following);
  net.backward([&](std::size_t id) { order.push_back(id); });
  std::size_t tensors = 0;
  net.each_tensor([&](auto const&, auto, auto) { ++tensors; });
  ASSERT_EQ(order.size(), tensors);
  for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], tensors - 1 - i);
}

}  // namespace
