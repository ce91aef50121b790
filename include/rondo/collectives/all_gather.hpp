#pragma once

#include <rondo/collectives/request.hpp>

#include <cstddef>
#include <span>

namespace rondo::inline v0::collectives {

/// Every rank ends with the blocks of all, in the order of ranks. `in` may be block r of `out`.
template <class T>
struct all_gather : symmetric {
  static constexpr collective kind = collective::all_gather;

  std::span<T const> in;
  std::span<T> out;
  blocks counts;

  std::size_t bytes() const noexcept { return out.size_bytes(); }

  void prepare(run::job& j, rank_t rank, int ranks) const {
    counts.check("all_gather", ranks);
    check_size("all_gather", "input", in, counts[static_cast<std::size_t>(rank)]);
    check_size("all_gather", "output", out, counts.sum(ranks));
    check_place<T>("all_gather", out, counts.before(rank), in);
    mark_type<T>(j, out.size());
    j.mark.shape = counts.shape();
    counts.each(ranks, [&](std::size_t i, std::size_t before, std::size_t count) {
      std::byte* const place = bytes_of(out) + before * sizeof(T);
      if (i == static_cast<std::size_t>(rank)) copy_bytes(place, bytes_of(in), count * sizeof(T));
      j.chunks.push_back({place, place, count});
    });
  }
};

}  // namespace rondo::inline v0::collectives
