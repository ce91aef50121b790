#include "addressable_probe.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace rondo::bench {
namespace {

constexpr std::size_t block = 1024;  // floats that are folded in the first-level cache before they are stored

#if defined(__x86_64__)
[[gnu::target_clones("avx512f", "avx2", "default")]]
#endif
void add(float* sum, float const* first, float const* second, std::size_t count) {  // `sum` may be one of the others
#ifndef __clang__
#pragma GCC ivdep
#endif
  for (std::size_t i = 0; i < count; ++i) sum[i] = first[i] + second[i];
}

/// Begins with the input of `rank`, which may be where the sums go.
void fold_block(shared_buffers const& all, int rank, int ranks, std::size_t at, std::size_t count, float* sum) {
  float const* so_far = all.in(rank) + at;
  for (int r = 0; r < ranks; ++r) {
    if (r == rank) continue;
    add(sum, so_far, all.in(r) + at, count);
    so_far = sum;
  }
}

void stream(float* to, float const* from, std::size_t count) {
#if defined(__SSE2__)
  while (count >= 4 && reinterpret_cast<std::uintptr_t>(to) % 16 != 0) {
    *to++ = *from++;
    --count;
  }
  for (; count >= 4; count -= 4, to += 4, from += 4) _mm_stream_ps(to, _mm_loadu_ps(from));
#endif
  std::memcpy(to, from, count * sizeof(float));
}

void finish_stream() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace

void pull_sums(shared_buffers const& all, int ranks, std::size_t offset, std::size_t count, float* out) {
  alignas(64) std::array<float, block> sum;
  for (std::size_t done = 0; done < count; done += block) {
    auto const length = std::min(block, count - done);
    fold_block(all, 0, ranks, offset + done, length, sum.data());
    std::memcpy(out + done, sum.data(), length * sizeof(float));
  }
}

void push_sums(shared_buffers const& all, int rank, int ranks, std::size_t count, bool non_temporal) {
  alignas(64) std::array<float, block> sum;
  auto const p = static_cast<std::size_t>(ranks), r = static_cast<std::size_t>(rank);
  for (std::size_t at = count * r / p, end = count * (r + 1) / p; at < end; at += block) {
    auto const length = std::min(block, end - at);
    // In place the loads have brought the lines of this rank's output.
    bool const straight = all.in_place() && !non_temporal;
    float* const block_sum = straight ? all.out(rank) + at : sum.data();
    fold_block(all, rank, ranks, at, length, block_sum);
    for (int to = 0; to < ranks; ++to) {
      if (straight && to == rank) continue;
      non_temporal ? stream(all.out(to) + at, block_sum, length)
                   : static_cast<void>(std::memcpy(all.out(to) + at, block_sum, length * sizeof(float)));
    }
  }
  if (non_temporal) finish_stream();
}

}  // namespace rondo::bench
