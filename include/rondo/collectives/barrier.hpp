#pragma once

#include <rondo/collectives/request.hpp>

#include <cstddef>

namespace rondo::inline v0::collectives {

/// No rank goes on before all ranks have come.
struct barrier : symmetric {
  static constexpr collective kind = collective::barrier;

  std::size_t bytes() const noexcept { return 0; }
  void prepare(run::job&, rank_t, int) const noexcept {}
};

}  // namespace rondo::inline v0::collectives
