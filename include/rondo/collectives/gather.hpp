#pragma once

#include <rondo/collectives/request.hpp>

#include <cstddef>
#include <span>

namespace rondo::inline v0::collectives {

/// The root ends with the blocks of all ranks in their order. `out` is the root's; elsewhere it is empty.
template <class T>
struct gather : rooted {
  static constexpr collective kind = collective::gather;

  std::span<T const> in;
  std::span<T> out;

  std::size_t bytes() const noexcept { return in.size_bytes(); }

  void prepare(run::job& j, rank_t rank, int ranks) const {
    check_root("gather", root(), ranks);
    bool const collects = rank == root();
    if (collects) {
      check_size("gather", "output", out, in.size() * static_cast<std::size_t>(ranks));
      check_place<T>("gather", out, in.size() * static_cast<std::size_t>(rank), in);
    }
    mark_type<T>(j, in.size());
    j.mark.root = root();
    j.echo = true;
    for (rank_t q = 0; q < ranks; ++q) {
      std::byte* const place = collects    ? bytes_of(out) + static_cast<std::size_t>(q) * in.size_bytes()
                               : q == rank ? writable_bytes_of(in)  // only read
                                           : nullptr;               // never touched
      if (collects && q == rank) copy_bytes(place, bytes_of(in), in.size_bytes());
      j.chunks.push_back({place, place, in.size()});
    }
  }
};

}  // namespace rondo::inline v0::collectives
