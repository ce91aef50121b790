#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/types.hpp>

#include <cstddef>
#include <vector>

namespace rondo::inline v0::run {

/// Where the buffers of all ranks are, as this rank sees them.
class mapped_buffers {
 public:
  explicit mapped_buffers(int ranks) : places_(static_cast<std::size_t>(ranks)) {}

  void set(rank_t q, std::byte const* source, std::byte* home) { detail::by_rank(places_, q) = {source, home}; }
  std::byte const* source(rank_t q) const noexcept { return detail::by_rank(places_, q).source; }
  std::byte* home(rank_t q) const noexcept { return detail::by_rank(places_, q).home; }

 private:
  struct place {
    std::byte const* source;
    std::byte* home;
  };
  std::vector<place> places_;
};

}  // namespace rondo::inline v0::run
