#pragma once

#include <rondo/config.hpp>

#include <bit>
#include <cstddef>
#include <type_traits>

namespace rondo::inline v0::device {

/// Numbers that a block of so many threads has in common, for the calls below.
RONDO_HD constexpr std::size_t scratch_count(unsigned threads) noexcept { return threads < 32 ? 32 : threads; }

/// The sum of a number from every thread of the block, in all of them: in one tree, which depends on the number of
/// threads alone. All threads call alike.
template <class Context>
RONDO_HD double block_sum(Context& context, double value) {
  double* const all = context.scratch();
  unsigned const me = context.thread(), threads = context.threads();
  all[me] = value;
  context.sync();
  for (unsigned half = std::bit_ceil(threads) / 2; half > 0; half /= 2) {
    if (me < half && me + half < threads) all[me] += all[me + half];
    context.sync();
  }
  double const sum = all[0];
  context.sync();  // all have read it
  return sum;
}

/// What make() returns in one thread, in all threads of the block: for what takes long to compute. All threads call
/// alike.
template <class Context, class Make>
RONDO_HD auto block_share(Context& context, Make const& make) {
  using V = decltype(make());
  static_assert(std::is_trivially_copyable_v<V> && sizeof(V) <= scratch_count(1) * sizeof(double),
                "what a block shares has at most 256 bytes");
  auto* const shared = reinterpret_cast<V*>(context.scratch());
  if (context.thread() == 0) *shared = make();
  context.sync();
  V const value = *shared;
  context.sync();
  return value;
}

}  // namespace rondo::inline v0::device
