#pragma once

#include <rondo/collectives/request.hpp>

#include <cstddef>
#include <span>

namespace rondo::inline v0::collectives {

/// Every rank ends with the values of the root.
template <class T>
struct broadcast : rooted {
  static constexpr collective kind = collective::broadcast;

  std::span<T> data;

  std::size_t bytes() const noexcept { return data.size_bytes(); }

  void prepare(run::job& j, rank_t, int ranks) const {
    check_root("broadcast", root(), ranks);
    mark_type<T>(j, data.size());
    j.mark.root = root();
    j.echo = true;
    j.count = data.size();
    j.source = j.home = bytes_of(data);
  }
};

}  // namespace rondo::inline v0::collectives
