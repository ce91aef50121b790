#include <rondo/diagnostics/straggler.hpp>
#include <rondo/gradient/bucket.hpp>
#include <rondo/gradient/norm.hpp>

#include <gtest/gtest.h>
#include <vector>

namespace {

using namespace rondo;

/// Parameters of some counts; nobody looks at their values.
template <class T>
std::vector<parameter> tensors(std::vector<std::size_t> const& counts) {
  std::vector<parameter> all;
  for (std::size_t const n : counts)
    all.emplace_back("t" + std::to_string(all.size()), std::span<T>(static_cast<T*>(nullptr), n));
  return all;
}

/// The parameters of each bucket.
std::vector<std::vector<std::size_t>> ids(bucket_plan const& plan) {
  std::vector<std::vector<std::size_t>> all;
  for (bucket const& b : plan.buckets()) {
    all.emplace_back();
    for (bucket_slot const& s : b.slots) all.back().push_back(s.parameter);
  }
  return all;
}

using lists = std::vector<std::vector<std::size_t>>;

TEST(bucket_plan, goes_backwards_and_never_splits_a_tensor) {
  bucket_plan const plan(tensors<float>({10, 20, 1000, 30, 40, 5}), 2, {.first = 160, .most = 400});
  EXPECT_EQ(ids(plan), (lists{{5, 4}, {3}, {2}, {1, 0}}));
}

TEST(bucket_plan, a_small_first_bucket_begins_early) {
  bucket_plan const plan(tensors<float>(std::vector<std::size_t>(10, 256)), 1, {.first = 1024, .most = 4096});
  EXPECT_EQ(ids(plan), (lists{{9}, {8, 7, 6, 5}, {4, 3, 2, 1}, {0}}));
}

TEST(bucket_plan, parts_of_ranks_are_equal_and_begin_on_cache_lines) {
  for (int const ranks : {1, 2, 3, 7}) {
    bucket_plan const plan(tensors<float>({17, 0, 5}), ranks, {});
    ASSERT_EQ(plan.buckets().size(), 1U);
    bucket const& b = plan.buckets()[0];
    EXPECT_EQ(b.count % (16 * static_cast<std::size_t>(ranks)), 0U);
    EXPECT_GE(b.count, 22U);
    EXPECT_LT(b.count, 22 + 16 * static_cast<std::size_t>(ranks));
    EXPECT_EQ(b.slots[1].offset, 5U);
    EXPECT_EQ(plan.of(0).slot, 2U);
  }
}

TEST(bucket_plan, types_do_not_mix_and_buckets_are_in_the_order_in_which_they_fill) {
  std::vector<parameter> all = tensors<float>({4, 4});
  for (auto& p : tensors<double>({4, 4})) all.push_back(p);
  for (auto& p : tensors<bfloat16>({4})) all.push_back(p);
  std::swap(all[1], all[4]);
  bucket_plan const plan(all, 1, {.first = 1 << 20, .most = 1 << 20});
  EXPECT_EQ(ids(plan), (lists{{3, 2}, {1}, {4, 0}}));
  EXPECT_EQ(plan.buckets()[1].bytes(), plan.buckets()[1].count * sizeof(float)) << "narrow floats are added as float";
}

TEST(bucket_plan, its_digest_tells_names_sizes_types_and_cuts_apart) {
  bucket_sizes const sizes{.first = 64, .most = 64};
  auto const digest = [&](std::vector<parameter> const& all, bucket_sizes const& cut) {
    return bucket_plan(all, 2, cut).digest();
  };
  auto const one = digest(tensors<float>({10, 20}), sizes);
  EXPECT_EQ(one, digest(tensors<float>({10, 20}), sizes));
  EXPECT_NE(one, digest(tensors<float>({20, 10}), sizes));
  EXPECT_NE(one, digest(tensors<bfloat16>({10, 20}), sizes));
  EXPECT_NE(one, digest(tensors<float>({10, 20}), {}));
  auto renamed = tensors<float>({10, 20});
  renamed[0].name = "other";
  EXPECT_NE(one, digest(renamed, sizes));
}

TEST(norm, has_the_same_bits_in_parts_and_as_a_whole) {
  std::vector<float> values(3 * 48);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.0F / static_cast<float>(i + 1);
  squares_by_rank whole(3), parts(3);
  long double expected = 0;
  for (float const v : values) expected += static_cast<long double>(v) * static_cast<long double>(v);
  for (int bucket = 0; bucket < 2; ++bucket) {
    whole.add(std::span<float const>(values));
    for (std::size_t r = 3; r-- > 0;) parts.add(r, std::span<float const>(values).subspan(48 * r, 48));
  }
  EXPECT_EQ(whole.total(), parts.total());
  EXPECT_NEAR(whole.total(), static_cast<double>(2 * expected), 1e-14);
  squares_by_rank doubles(2);
  doubles.add(std::span<double const>(std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(doubles.of(1), 25);
  EXPECT_EQ(doubles.total(), 30);
}

TEST(straggler_log, remembers_who_is_late_and_forgets_slowly) {
  using seconds = straggler_log::seconds;
  straggler_log log(2);
  EXPECT_EQ(log.slowest(), nobody);
  std::vector<seconds> const first{seconds(1), seconds(3), seconds(1.5)}, then{seconds(5), seconds(1), seconds(1)};
  log.add(first);
  EXPECT_EQ(log.slowest(), 1);
  EXPECT_NEAR(log.ranks()[1].late.count(), 2, 1e-12);
  log.add(first);
  EXPECT_NEAR(log.ranks()[2].late.count(), 0.5, 1e-12);
  for (int i = 0; i < 20; ++i) log.add(then);
  EXPECT_EQ(log.slowest(), 0);
  EXPECT_NEAR(log.ranks()[0].late.count(), 4, 0.01);
  EXPECT_EQ(log.ranks()[0].slowest, 20U);
  EXPECT_EQ(log.text(), "rank 0 is 4e+03 ms behind the fastest and was the slowest in 20 of 22 steps");
}

}  // namespace
