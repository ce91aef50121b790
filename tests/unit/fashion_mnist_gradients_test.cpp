#include <array>
#include <fashion_mnist/models.hpp>
#include <fashion_mnist/softmax.hpp>
#include <functional>
#include <gtest/gtest.h>

namespace {

using namespace fashion_mnist;

// Against central differences in double: the step is near the cube root of the precision, where their error is least.
constexpr double nudge = 1e-5, tolerance = 1e-8;

using labels = std::array<std::uint8_t, 3>;

matrix<double> random_images(Eigen::Index pixels, Eigen::Index count) {
  std::mt19937_64 random(7);
  matrix<double> images(pixels, count);
  for (double& pixel : images.reshaped()) pixel = static_cast<double>(random() >> 11) * 0x1p-52 - 1.0;
  return images;
}

/// Compares `gradient` with the slope of loss() along every `stride`-th of `values`.
void expect_slopes(std::span<double> values, std::span<double const> gradient, std::size_t stride,
                   std::function<double()> const& loss) {
  for (std::size_t i = 0; i < values.size(); i += stride) {
    double const at = values[i];
    values[i] = at + nudge;
    double const above = loss();
    values[i] = at - nudge;
    double const below = loss();
    values[i] = at;
    EXPECT_NEAR(gradient[i], (above - below) / (2 * nudge), tolerance) << "parameter " << i;
  }
}

/// Checks the gradient of a whole net. Along a few parameters only, where the net is large.
void check(net<double> model, Eigen::Index pixels, std::size_t stride) {
  labels const truth{1, 0, 2};
  matrix<double> const images = random_images(pixels, std::ssize(truth));
  for (double& parameter : model.parameters()) parameter += 0.01;  // biases are drawn as 0, which hides their gradients
  std::vector<double> gradient(model.parameters().size(), 1e9);    // must be overwritten, not added to

  model.backward(softmax_cross_entropy(model.forward(images), truth).second, gradient);
  expect_slopes(model.parameters(), gradient, stride,
                [&] { return softmax_cross_entropy(model.forward(images), truth).first; });
}

TEST(fashion_mnist_gradients, linear) { check(net<double>(1, linear<double>(5, 3)), 5, 1); }

TEST(fashion_mnist_gradients, two_layers) {
  check(net<double>(1, linear<double>(5, 7), relu<double>(), linear<double>(7, 4)), 5, 1);
}

TEST(fashion_mnist_gradients, convolutions_and_pool_on_an_uneven_image) {
  convolution<double> const first({8, 7, 2}, 3, 3);
  max_pool<double> const pool(first.out());
  convolution<double> const second(pool.out(), 2, 4);
  check(net<double>(1, first, pool, relu<double>(), second, linear<double>(second.out().size(), 3)), 8 * 7 * 2, 1);
}

TEST(fashion_mnist_gradients, mlp) { check(mlp<double>(3), 28 * 28, 997); }

TEST(fashion_mnist_gradients, conv) { check(conv<double>(3), 28 * 28, 53); }

TEST(fashion_mnist_gradients, parts_of_a_batch_add_up_to_the_whole) {
  labels const truth{1, 0, 2};
  matrix<double> const images = random_images(28 * 28, std::ssize(truth));
  net<double> model = conv<double>(5);
  auto const gradient = [&](Eigen::Index first, Eigen::Index count) {
    Eigen::VectorXd result(std::ssize(model.parameters()));
    auto const part = std::span(truth).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    model.backward(softmax_cross_entropy(model.forward(images.middleCols(first, count)), part).second,
                   {result.data(), model.parameters().size()});
    return result;
  };
  EXPECT_LT((gradient(0, 1) + gradient(1, 2) - gradient(0, 3)).lpNorm<Eigen::Infinity>(), 1e-12);
  EXPECT_EQ(gradient(1, 0).lpNorm<Eigen::Infinity>(), 0) << "a rank without images must contribute nothing";
}

}  // namespace
