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
void add(float* sum, float const* first, float const* second, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) sum[i] = first[i] + second[i];
}

void fold_block(shared_buffers const& all, int ranks, std::size_t at, std::size_t count, float* sum) {
  add(sum, all.in(0) + at, all.in(1) + at, count);
  for (int r = 2; r < ranks; ++r) add(sum, sum, all.in(r) + at, count);
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
    fold_block(all, ranks, offset + done, length, sum.data());
    std::memcpy(out + done, sum.data(), length * sizeof(float));
  }
}

void push_sums(shared_buffers const& all, int rank, int ranks, std::size_t count, bool non_temporal) {
  alignas(64) std::array<float, block> sum;
  auto const p = static_cast<std::size_t>(ranks), r = static_cast<std::size_t>(rank);
  for (std::size_t at = count * r / p, end = count * (r + 1) / p; at < end; at += block) {
    auto const length = std::min(block, end - at);
    fold_block(all, ranks, at, length, sum.data());
    for (int to = 0; to < ranks; ++to)
      non_temporal ? stream(all.out(to) + at, sum.data(), length)
                   : static_cast<void>(std::memcpy(all.out(to) + at, sum.data(), length * sizeof(float)));
  }
  if (non_temporal) finish_stream();
}

}  // namespace rondo::bench
