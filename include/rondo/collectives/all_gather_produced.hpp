#pragma once

#include <rondo/collectives/request.hpp>
#include <rondo/detail/epilogue_kernel.hpp>
#include <rondo/fused/epilogue.hpp>

#include <algorithm>
#include <cstddef>
#include <span>

namespace rondo::inline v0::collectives {

/// Every rank ends with the blocks that the producers of all ranks make, in the order of ranks.
template <class U, class P>
struct all_gather_produced : symmetric {
  static constexpr collective kind = collective::all_gather;
  static constexpr bool has_owners = true;
  static constexpr std::size_t widest = sizeof(U);

  P producer;
  std::span<U> out;
  blocks counts;

  std::size_t bytes() const noexcept { return out.size_bytes(); }

  void prepare(run::job& j, rank_t rank, int ranks) const {
    check(j, ranks);
    counts.each(ranks, [&](std::size_t i, std::size_t before, std::size_t count) {
      std::byte* const place = bytes_of(out) + before * sizeof(U);
      if (i == static_cast<std::size_t>(rank))
        for (std::size_t at = 0; at < count; at += block)
          detail::apply_producer<U>(producer, at, place + at * sizeof(U), std::min(count - at, block));
      j.chunks.push_back({place, place, count});
    });
  }

  /// As prepare(), for owners that can store to the buffers of all.
  void prepare_owners(run::job& j, rank_t, int ranks) const {
    check(j, ranks);
    run::owned_work& work = j.owned;
    work.contribution = 0;
    work.result = sizeof(U);
    work.to_all = true;
    work.source = nullptr;
    work.home = bytes_of(out);
    work.first.clear();
    counts.each(ranks, [&](std::size_t, std::size_t before, std::size_t) { work.first.push_back(before); });
    work.first.push_back(out.size());
    work.block = block;
    work.scratch = 0;
    work.request = this;
    work.make = [](run::owned_work const& w, std::span<std::byte const*>, std::size_t at, std::size_t count,
                   std::byte* results, std::byte*) noexcept {
      detail::apply_producer<U>(static_cast<all_gather_produced const*>(w.request)->producer, at, results, count);
    };
  }

 private:
  static constexpr std::size_t block = detail::block_of(sizeof(U));

  void check(run::job& j, int ranks) const {
    counts.check("all_gather", ranks);
    check_size("all_gather", "output", out, counts.sum(ranks));
    check_reach(out);
    mark_type<U>(j, out.size());
    j.mark.op = to_short_name("produced");
    j.mark.shape = counts.shape();
  }
};

}  // namespace rondo::inline v0::collectives
