#pragma once

#include <rondo/collectives/request.hpp>

#include <cstddef>
#include <span>

namespace rondo::inline v0::collectives {

/// Block q of rank r ends as block r of rank q. `out` may be `in`.
template <class T>
struct all_to_all : symmetric {
  static constexpr collective kind = collective::all_to_all;

  std::span<T const> in;
  blocks to;
  std::span<T> out;
  blocks from;

  std::size_t bytes() const noexcept { return in.size_bytes(); }

  void prepare(run::job& j, rank_t rank, int ranks) const {
    to.check("all_to_all", ranks);
    from.check("all_to_all", ranks);
    check_size("all_to_all", "input", in, to.sum(ranks));
    check_size("all_to_all", "output", out, from.sum(ranks));
    check_apart("all_to_all", in, out);
    if (to[static_cast<std::size_t>(rank)] != from[static_cast<std::size_t>(rank)])
      refuse({"all_to_all sends a rank's own block to itself: give it the same count both ways"});
    mark_type<T>(j, 0);
    j.segmented = false;
    j.promises.resize(static_cast<std::size_t>(ranks));
    std::byte* source = writable_bytes_of(in);  // only read
    if (in.data() == out.data() && ranks > 1) {
      source = j.reserve(in.size_bytes());
      copy_bytes(source, bytes_of(in), in.size_bytes());
    }
    std::byte const* own = nullptr;
    to.each(ranks, [&](std::size_t i, std::size_t before, std::size_t count) {
      std::byte* const place = source + before * sizeof(T);
      if (i == static_cast<std::size_t>(rank)) own = place;
      j.chunks.push_back({place, place, count});
      j.promises[i].out = count;
    });
    from.each(ranks, [&](std::size_t i, std::size_t before, std::size_t count) {
      std::byte* const place = bytes_of(out) + before * sizeof(T);
      if (i == static_cast<std::size_t>(rank)) copy_bytes(place, own, count * sizeof(T));
      j.chunks.push_back({place, place, count});
      j.promises[i].in = count;
    });
  }
};

}  // namespace rondo::inline v0::collectives
