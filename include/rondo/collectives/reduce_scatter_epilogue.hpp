#pragma once

#include <rondo/collectives/request.hpp>
#include <rondo/detail/block_fold.hpp>
#include <rondo/fused/epilogue.hpp>
#include <rondo/run/operands.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace rondo::inline v0::collectives {

/// Rank r ends with what its epilogue makes of block r of the fold of all contributions, which is computed in their
/// accumulator type.
template <class T, class U, class Op, class E>
struct reduce_scatter_epilogue : symmetric {
  static constexpr collective kind = collective::reduce_scatter;
  static constexpr bool keeps_order = !is_commutative_v<Op>;

  using value = accumulator_t<T>;
  using traits = op_traits<Op, value>;
  using wide = typename traits::wide;

  /// Owners can fold what others contribute as it is.
  static constexpr bool has_owners = !traits::widens && !traits::prepares;
  static constexpr std::size_t widest = std::max(sizeof(T), sizeof(U));

  std::span<T const> in;
  std::span<U> out;
  blocks counts;
  Op op;
  E epilogue;

  std::size_t bytes() const noexcept { return in.size() * sizeof(wide); }

  void prepare(run::job& j, rank_t rank, int ranks) const {
    check(j, rank, ranks);
    if constexpr (has_owners)
      if (ranks == 1) return prepare_alone(j);
    auto const* source = bytes_of(in);
    auto* const home = j.reserve(in.size() * sizeof(wide));
    if constexpr (!std::is_same_v<T, wide>)
      detail::convert_range<wide, T>(home, std::exchange(source, home), in.size());
    if constexpr (traits::prepares) detail::prepare_range<wide>(op, home, std::exchange(source, home), in.size());
    run::fold_by<wide>(j, op);
    j.moves = source != home;
    counts.each(ranks, [&](std::size_t, std::size_t before, std::size_t count) {
      j.chunks.push_back({source + before * sizeof(wide), home + before * sizeof(wide), count});
    });
    j.op = this;
    j.wide = home + counts.before(rank) * sizeof(wide);
    j.after = [](run::job const& owner) {
      static_cast<reduce_scatter_epilogue const*>(owner.op)->finish(owner.wide, owner.ranks);
    };
  }

  /// As prepare(), for owners that see the contributions of all.
  void prepare_owners(run::job& j, rank_t rank, int ranks) const {
    check(j, rank, ranks);
    own(j, ranks);
  }

 private:
  static constexpr std::size_t block = detail::block_of(std::max(widest, sizeof(value)));

  void check(run::job& j, rank_t rank, int ranks) const {
    detail::check_reduction<T, Op>();
    counts.check("reduce_scatter", ranks);
    check_size("reduce_scatter", "input", in, counts.sum(ranks));
    check_size("reduce_scatter", "output", out, counts[static_cast<std::size_t>(rank)]);
    if (!apart(std::as_bytes(in), std::as_bytes(out)))
      refuse({"reduce_scatter with an epilogue has buffers that overlap: pass an output that is apart from the input"});
    check_reach(in);
    check_reach(out);
    static short_name const with_epilogue = to_short_name(std::string(op_name<Op>()) + "+epilogue");
    mark_type<T>(j, in.size());
    j.mark.op = with_epilogue;
    j.mark.shape = counts.shape();
  }

  void own(run::job& j, int ranks) const {
    run::owned_work& work = j.owned;
    work.contribution = sizeof(T);
    work.result = sizeof(U);
    work.to_all = false;
    work.source = bytes_of(in);
    work.home = bytes_of(out);
    work.first.clear();
    counts.each(ranks, [&](std::size_t, std::size_t before, std::size_t) { work.first.push_back(before); });
    work.first.push_back(in.size());
    work.block = block;
    work.scratch = detail::block_fold<T, Op, block>::scratch_bytes(static_cast<std::size_t>(ranks));
    work.request = this;
    work.make = [](run::owned_work const& w, std::span<std::byte const*> sources, std::size_t at, std::size_t count,
                   std::byte* results, std::byte* scratch) noexcept {
      auto const& self = *static_cast<reduce_scatter_epilogue const*>(w.request);
      detail::block_fold<T, Op, block> fold;
      detail::apply_epilogue<U>(self.epilogue, at, fold(self.op, sources, count, scratch), results, count);
    };
  }

  /// A rank alone owns everything, and needs no memory for the contributions of others.
  void prepare_alone(run::job& j) const {
    own(j, 1);
    j.reserve(j.owned.scratch);
    j.op = this;
    j.after = [](run::job const& owner) {
      run::owned_work const& work = owner.owned;
      for (std::size_t at = 0; at < work.count(0); at += block) {
        std::byte const* source = work.source + at * work.contribution;
        work.make(work, std::span(&source, 1), at, std::min(work.count(0) - at, block), work.home + at * work.result,
                  const_cast<std::byte*>(owner.scratch.data()));
      }
    };
  }

  void finish(std::byte const* folded, int ranks) const noexcept {
    alignas(std::max<std::size_t>(64, alignof(value))) std::array<std::byte, block * sizeof(value)> values;
    for (std::size_t at = 0; at < out.size(); at += block) {
      std::size_t const n = std::min(out.size() - at, block);
      if constexpr (traits::finishes)
        detail::finish_range<value>(op, values.data(), folded + at * sizeof(wide), n, ranks);
      else
        std::memcpy(values.data(), folded + at * sizeof(wide), n * sizeof(value));
      detail::apply_epilogue<U>(epilogue, at, reinterpret_cast<value const*>(values.data()),
                                bytes_of(out) + at * sizeof(U), n);
    }
  }
};

}  // namespace rondo::inline v0::collectives
