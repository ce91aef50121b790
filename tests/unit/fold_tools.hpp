#pragma once

#include <rondo/fold.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <type_traits>
#include <vector>

namespace fold_tools {

using namespace rondo;

inline constexpr std::size_t counts[] = {0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 1000, 1027};

/// A buffer of T that starts `skew` bytes behind an aligned address, between guards that no fold may touch.
template <class T>
class skewed {
 public:
  skewed(std::size_t count, std::size_t skew) : skew_(skew), bytes_(skew + (count + 2) * sizeof(T), std::byte{0xa5}) {}

  std::byte* data() { return bytes_.data() + skew_ + sizeof(T); }
  void set(std::size_t i, T value) { detail::store(data() + i * sizeof(T), value); }
  T get(std::size_t i) { return detail::load<T>(data() + i * sizeof(T)); }

  bool guards_intact() const {
    for (std::size_t i = 0; i < skew_ + sizeof(T); ++i)
      if (bytes_[i] != std::byte{0xa5} || bytes_[bytes_.size() - 1 - i % sizeof(T)] != std::byte{0xa5}) return false;
    return true;
  }

 private:
  std::size_t skew_;
  std::vector<std::byte> bytes_;
};

template <class T>
T random_value(std::mt19937& random) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(random());
  else
    return static_cast<T>(static_cast<accumulator_t<T>>(static_cast<int>(random() % 2001) - 1000) / 64);
}

/// Every count, skew and kind of aliasing gives op(a[i], b[i]) as the operation itself computes it, one by one.
template <class T, class Op>
void folds_like(Op const& op) {
  std::mt19937 random(7);
  reduction const fold = make_reduction<T>(op);
  EXPECT_EQ(fold.element, sizeof(T));
  enum class alias { none, first, second };
  for (alias const where : {alias::none, alias::first, alias::second})
    for (std::size_t const skew : {0U, 1U, 3U})
      for (std::size_t const count : counts) {
        skewed<T> out(count, skew), a(count, 2 * skew), b(count, skew / 2);
        std::vector<T> expected;
        for (std::size_t i = 0; i < count; ++i) {
          T const x = random_value<T>(random), y = random_value<T>(random);
          a.set(i, x), b.set(i, y);
          expected.push_back(detail::combine(op, x, y));
        }
        skewed<T>& target = where == alias::none ? out : where == alias::first ? a : b;
        fold(target.data(), a.data(), b.data(), count);
        for (std::size_t i = 0; i < count; ++i) {
          T const got = target.get(i);
          ASSERT_EQ(std::memcmp(&got, &expected[i], sizeof(T)), 0)
              << op_name<Op>() << " of " << type_name<T>() << ", " << i << " of " << count << ", skew " << skew;
        }
        ASSERT_TRUE(out.guards_intact() && a.guards_intact() && b.guards_intact());
      }
}

}  // namespace fold_tools
