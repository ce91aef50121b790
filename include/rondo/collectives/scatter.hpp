#pragma once

#include <rondo/collectives/request.hpp>

#include <cstddef>
#include <span>

namespace rondo::inline v0::collectives {

/// Rank r ends with block r of the root's buffer. `in` is the root's; elsewhere it is empty.
template <class T>
struct scatter : rooted {
  static constexpr collective kind = collective::scatter;

  std::span<T const> in;
  std::span<T> out;

  std::size_t bytes() const noexcept { return out.size_bytes(); }

  void prepare(run::job& j, rank_t rank, int ranks) const {
    check_root("scatter", root(), ranks);
    bool const deals = rank == root();
    if (deals) {
      check_size("scatter", "input", in, out.size() * static_cast<std::size_t>(ranks));
      check_place<T>("scatter", in, out.size() * static_cast<std::size_t>(rank), out);
    }
    mark_type<T>(j, out.size());
    j.mark.root = root();
    j.echo = true;
    for (rank_t q = 0; q < ranks; ++q) {
      std::byte* const place = deals       ? writable_bytes_of(in) + static_cast<std::size_t>(q) * out.size_bytes()
                               : q == rank ? bytes_of(out)
                                           : nullptr;  // never touched
      if (deals && q == rank) copy_bytes(bytes_of(out), place, out.size_bytes());
      j.chunks.push_back({place, place, out.size()});
    }
  }
};

}  // namespace rondo::inline v0::collectives
