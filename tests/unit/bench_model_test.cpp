#include "model.hpp"
#include "text.hpp"

#include <cstddef>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

namespace rondo::bench {
namespace {

struct published {
  char const* name;
  std::size_t parameters, tensors;
};

class bench_model : public testing::TestWithParam<published> {};

TEST_P(bench_model, has_as_many_parameters_as_published) {
  auto const tensors = gradients(GetParam().name);
  EXPECT_EQ(total_count(tensors), GetParam().parameters);
  EXPECT_EQ(tensors.size(), GetParam().tensors);
}

TEST_P(bench_model, buckets_hold_everything_and_close_when_full) {
  constexpr std::size_t full = std::size_t{25} << 20;
  auto const tensors = gradients(GetParam().name);
  auto const counts = buckets(tensors, 4, full);
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::size_t{0}), total_count(tensors));
  for (std::size_t i = 0; i + 1 < counts.size(); ++i) EXPECT_GE(counts[i] * 4, full);
}

INSTANTIATE_TEST_SUITE_P(all, bench_model,
                         testing::Values(published{"gpt2", 124439808, 148}, published{"resnet50", 25557032, 161},
                                         published{"bert-base", 109482240, 199},
                                         published{"llama3-8b", 8030261248, 291}),
                         [](auto const& info) {
                           std::string name = info.param.name;
                           std::erase(name, '-');
                           return name;
                         });

TEST(bench_model_order, the_backward_pass_ends_at_the_input) {
  EXPECT_EQ(gradients("gpt2").front().name, "ln_f.bias");
  EXPECT_EQ(gradients("gpt2").back().name, "wte.weight");
  EXPECT_EQ(gradients("resnet50").front().name, "fc.bias");
  EXPECT_EQ(gradients("resnet50").back().count, 64U * 3 * 7 * 7);
  EXPECT_EQ(gradients("llama3-8b").front().count, std::size_t{128256} * 4096);
  EXPECT_EQ(gradients("bert-base").back().name, "embeddings.word_embeddings.weight");
}

TEST(bench_model_order, every_tensor_is_a_bucket_of_size_zero) {
  auto const tensors = gradients("resnet50");
  EXPECT_EQ(buckets(tensors, 4, 0).size(), tensors.size());
}

TEST(bench_model_order, an_unknown_model_is_refused_with_the_names) {
  try {
    gradients("gpt5");
    FAIL();
  } catch (usage_error const& e) { EXPECT_NE(std::string(e.what()).find("resnet50"), std::string::npos); }
}

}  // namespace
}  // namespace rondo::bench
