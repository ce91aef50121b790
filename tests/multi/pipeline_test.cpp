#include <rondo/pipeline/channel.hpp>
#include <rondo/pipeline/grid.hpp>
#include <rondo/pipeline/one_f_one_b.hpp>
#include <rondo/pipeline/tensor_parallel.hpp>
#include <rondo/transports/in_process.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace rondo;
using comm = communicator<in_process>;
using doubles = std::vector<double>;

/// One stage of a toy net: every number of a message gets a weight and a sigmoid. Both passes are written out, so that
/// the order of the sums is that of the calls.
struct stage {
  explicit stage(std::size_t n, int number) : weights(n), gradient(n, 0.0) {
    for (std::size_t i = 0; i < n; ++i)
      weights[i] = 0.3 + 0.01 * static_cast<double>((i * 7 + static_cast<std::size_t>(number) * 5) % 90);
  }

  doubles const& forward(int microbatch, std::span<double const> x) {
    auto& [in, out] = kept[microbatch];
    in.assign(x.begin(), x.end());
    out.resize(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = std::tanh(weights[i % weights.size()] * in[i]);
    return out;
  }

  /// The derivative of the loss by the input, given that by the output.
  doubles backward(int microbatch, std::span<double const> slope) {
    auto const& [in, out] = kept.at(microbatch);
    doubles back(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      double const inner = slope[i] * (1 - out[i] * out[i]);
      gradient[i % weights.size()] += inner * in[i];
      back[i] = inner * weights[i % weights.size()];
    }
    kept.erase(microbatch);
    return back;
  }

  doubles weights, gradient;
  std::map<int, std::array<doubles, 2>> kept;
};

doubles data(std::size_t n, int microbatch) {
  doubles x(n);
  for (std::size_t i = 0; i < n; ++i)
    x[i] = 1 + 0.001 * static_cast<double>((i + static_cast<std::size_t>(microbatch) * 31) % 997);
  return x;
}

struct line {
  int stages, microbatches, slots;
  std::size_t count;  ///< of a message
  bool expects;
};

class pipeline : public testing::TestWithParam<line> {};

/// The gradients of all stages are those of one process, bit for bit, also where messages are larger than the MiB that
/// the transport holds.
TEST_P(pipeline, has_the_gradients_of_one_process) {
  auto const p = GetParam();
  std::size_t const width = std::min<std::size_t>(p.count, 50);
  std::vector<doubles> expected, found(static_cast<std::size_t>(p.stages));
  {
    std::vector<stage> all;
    for (int s = 0; s < p.stages; ++s) all.emplace_back(width, s);
    for (int m = 0; m < p.microbatches; ++m) {
      doubles x = data(p.count, m);
      for (auto& s : all) x = s.forward(m, x);
      for (auto s = all.rbegin(); s != all.rend(); ++s) x = s->backward(m, x);  // half the sum of squares
    }
    for (auto& s : all) expected.push_back(s.gradient);
  }
  in_process::run(p.stages, [&](comm& c) {
    int const me = c.rank();
    rank_t const before = me == 0 ? nobody : me - 1, behind = me + 1 == c.size() ? nobody : me + 1;
    one_f_one_b const schedule{c.size(), p.microbatches};
    stage own(width, me);
    channel<in_process, double> activations(c, before, behind, p.count, p.slots);
    channel<in_process, double> slopes(c, behind, before, p.count, p.slots);
    if (p.expects) activations.expect(p.microbatches), slopes.expect(p.microbatches);
    doubles last;
    std::size_t most = 0;
    for (int i = 0; i < schedule.steps(); ++i) {
      auto const [what, m] = schedule.at(me, i);
      if (what == pass::forward) {
        auto const in = activations.receive();
        last = before == nobody ? own.forward(m, data(p.count, m)) : own.forward(m, in);
        activations.send(last);
      } else {
        auto const in = slopes.receive();
        slopes.send(behind == nobody ? own.backward(m, last) : own.backward(m, in));
      }
      most = std::max(most, own.kept.size());
    }
    activations.drain();
    slopes.drain();
    EXPECT_EQ(most, static_cast<std::size_t>(schedule.kept(me)));
    found[static_cast<std::size_t>(me)] = own.gradient;
  });
  for (std::size_t s = 0; s < found.size(); ++s) EXPECT_EQ(found[s], expected[s]) << "stage " << s;
}

INSTANTIATE_TEST_SUITE_P(of, pipeline,
                         testing::Values(line{4, 8, 1, 50, false}, line{4, 6, 1, 150'000, false},
                                         line{4, 6, 1, 150'000, true}, line{4, 3, 2, 1000, true},
                                         line{2, 5, 1, 1, false}, line{3, 1, 1, 7, true}, line{1, 4, 1, 10, true}),
                         [](auto const& info) {
                           auto const& p = info.param;
                           return std::to_string(p.stages) + "_stages_" + std::to_string(p.microbatches) + "_of_" +
                                  std::to_string(p.count) + "_through_" + std::to_string(p.slots) +
                                  (p.expects ? "_expected" : "");
                         });

TEST(channel, keeps_the_order_and_never_blocks_the_other_way) {
  in_process::run(2, [](comm& c) {
    rank_t const other = 1 - c.rank();
    channel<in_process, int> ways(c, other, other, 300'000, 2);
    std::vector<int> message(300'000);
    for (int k = 0; k < 2; ++k) {  // both send first: blocking sends of this size would wait for each other
      std::fill(message.begin(), message.end(), 10 * c.rank() + k);
      ways.send(message);
    }
    for (int k = 0; k < 2; ++k) {
      auto const got = ways.receive();
      EXPECT_EQ(std::count(got.begin(), got.end(), 10 * other + k), 300'000);
    }
    EXPECT_THROW(ways.send(std::span(message).first(3)), invalid_argument);
    EXPECT_THROW((channel<in_process, int>(c, other, other, 3, 0)), invalid_argument);
  });
}

TEST(grid, has_a_communicator_for_each_dimension) {
  in_process::run(8, [](comm& c) {
    grid<in_process> const g(c, {.tensor = 2, .pipeline = 2});
    EXPECT_EQ(g.tensor.size(), 2);
    EXPECT_EQ(g.data.size(), 2);
    EXPECT_EQ(g.pipeline.size(), 2);
    EXPECT_EQ(c.rank(), g.tensor.rank() + 2 * (g.data.rank() + 2 * g.pipeline.rank()));
  });
  in_process::run(6, [](comm& c) {
    grid<in_process> g(c, {.pipeline = 3});
    std::array sum_of_ranks{c.rank()};
    g.data.all_reduce(sum_of_ranks, sum);
    EXPECT_EQ(sum_of_ranks[0], c.rank() / 2 * 4 + 1) << "the data dimension has ranks of one stage";
    EXPECT_THROW((grid<in_process>(c, {.tensor = 4})), invalid_argument);
  });
}

/// y = B tanh(A x), the rows of A and the columns of B divided, against one rank that has all of both.
TEST(tensor_parallel, two_divided_layers_do_what_whole_ones_do) {
  constexpr std::size_t in = 5, hidden = 7, out = 3, samples = 4;
  auto const a = [](std::size_t row, std::size_t column) { return 0.1 * static_cast<double>(row * 3 + column) - 0.6; };
  auto const b = [](std::size_t row, std::size_t column) { return 0.2 * static_cast<double>(row + column * 2) - 1; };
  doubles x(in * samples), inner(hidden * samples, 0.0), y(out * samples, 0.0), dy(out * samples),
      dx(in * samples, 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.05 * static_cast<double>(i) - 0.3;
  for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = 1 - 0.1 * static_cast<double>(i);
  for (std::size_t s = 0; s < samples; ++s) {
    for (std::size_t h = 0; h < hidden; ++h) {
      for (std::size_t i = 0; i < in; ++i) inner[s * hidden + h] += a(h, i) * x[s * in + i];
      inner[s * hidden + h] = std::tanh(inner[s * hidden + h]);
      double slope = 0;
      for (std::size_t o = 0; o < out; ++o) {
        y[s * out + o] += b(o, h) * inner[s * hidden + h];
        slope += b(o, h) * dy[s * out + o];
      }
      slope *= 1 - inner[s * hidden + h] * inner[s * hidden + h];
      for (std::size_t i = 0; i < in; ++i) dx[s * in + i] += a(h, i) * slope;
    }
  }
  for (int const n : {1, 2, 3, 5}) {
    in_process::run(n, [&](comm& c) {
      tensor_parallel layers(c);
      std::size_t const own = layers.own(hidden), first = layers.first(hidden, c.rank());
      doubles part(own * samples, 0.0), total(out * samples, 0.0), back(in * samples, 0.0), whole(hidden * samples),
          again(part);
      for (std::size_t s = 0; s < samples; ++s)
        for (std::size_t h = 0; h < own; ++h) {
          double value = 0, slope = 0;
          for (std::size_t i = 0; i < in; ++i) value += a(first + h, i) * x[s * in + i];
          part[s * own + h] = value = std::tanh(value);
          for (std::size_t o = 0; o < out; ++o) {
            total[s * out + o] += b(o, first + h) * value;
            slope += b(o, first + h) * dy[s * out + o];
          }
          for (std::size_t i = 0; i < in; ++i) back[s * in + i] += a(first + h, i) * slope * (1 - value * value);
        }
      layers.add(total);
      layers.add(back);
      for (std::size_t i = 0; i < total.size(); ++i) EXPECT_NEAR(total[i], y[i], 1e-12);
      for (std::size_t i = 0; i < back.size(); ++i) EXPECT_NEAR(back[i], dx[i], 1e-12);
      layers.gather<double>(part, whole, hidden);
      EXPECT_EQ(whole, inner);
      layers.keep_own<double>(whole, again, hidden);
      EXPECT_EQ(again, part);
      EXPECT_THROW(layers.gather<double>(part, whole, hidden + 1), invalid_argument);
    });
  }
}

}  // namespace
