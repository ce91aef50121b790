#pragma once

#include <rondo/error.hpp>
#include <rondo/schedule.hpp>
#include <rondo/schedule/ring.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace rondo::inline v0 {

/// Groups of neighbours with fast links inside, such as the ranks of one host: what crosses a border is reduced first.
///
/// Let L be the size of the largest group. The buffer is cut into L slices, which the ranks of each group own in runs
/// of equal length, up to one. A direct reduce-scatter inside each group gives the owners the sums of their group; for
/// each slice its owners, one in each group, run a ring all-reduce; a direct all-gather inside each group hands the
/// results out. The groups may have any sizes: a rank of a small group takes several slices, in turn. The tree depends
/// on the chunk. With equal groups this is the two-dimensional all-reduce of Mikami et al., arXiv 1811.05233, 2018.
struct hierarchical {
  static constexpr std::string_view name = "hierarchical";

  /// Consecutive runs of ranks. One KiB, so that a schedule stays a value.
  class groups {
   public:
    static constexpr int max_count = 253;

    static constexpr bool valid(std::span<int const> sizes) noexcept {
      return !sizes.empty() && sizes.size() <= max_count && std::ranges::all_of(sizes, [](int n) { return n > 0; });
    }

    /// Throws invalid_argument unless valid(sizes).
    constexpr explicit groups(std::span<int const> sizes) {
      if (!valid(sizes))
        throw invalid_argument("hierarchical takes 1 to " + std::to_string(max_count) +
                               " groups of at least one rank each");
      smallest_ = sizes.front();
      for (int const n : sizes) {
        largest_ = std::max(largest_, n);
        smallest_ = std::min(smallest_, n);
        end_[count_] = first(count_) + n;
        ++count_;
      }
    }

    RONDO_HD constexpr int count() const noexcept { return count_; }
    RONDO_HD constexpr int largest() const noexcept { return largest_; }
    RONDO_HD constexpr int smallest() const noexcept { return smallest_; }
    RONDO_HD constexpr rank_t first(int group) const noexcept { return group > 0 ? end_[group - 1] : 0; }
    RONDO_HD constexpr int size(int group) const noexcept { return end_[group] - first(group); }
    RONDO_HD constexpr int ranks() const noexcept { return end_[count_ - 1]; }

    /// The group of a rank. O(log count()).
    RONDO_HD constexpr int of(rank_t r) const noexcept {
      int low = 0, high = count_ - 1;
      while (low < high) {
        int const middle = (low + high) / 2;
        r < end_[middle] ? high = middle : low = middle + 1;
      }
      return low;
    }

   private:
    int end_[max_count] = {};
    int count_ = 0, largest_ = 0, smallest_ = 0;
  };

  /// 2(L - 1) + 2(G - 1) K rounds for G groups, where K = ceil(L / smallest group) is the largest number of slices of a
  /// rank. A rank of the largest group sends 2(L - 1)/L of the buffer inside and 2(G - 1)/(G L) across.
  ///
  /// `pipelined` keeps the links inside and across busy at the same time, for buffers in many segments: segments follow
  /// each other so closely that, while one crosses the borders, a later one is reduced inside and an earlier one is
  /// handed out. The rounds of a segment are then spread over several times as many, of which the others are idle.
  struct all_reduce {
    groups g;
    bool pipelined = false;

    static constexpr bool keeps_rank_order = false;
    static constexpr bool uniform_tree = false;

    RONDO_HD constexpr int ranks() const noexcept { return g.ranks(); }
    RONDO_HD constexpr int chunks() const noexcept { return g.largest() * g.count(); }
    RONDO_HD constexpr int rounds() const noexcept { return pipelined ? busy() * stages() : busy(); }
    RONDO_HD constexpr int period() const noexcept { return busy() > 0 ? busy() : 1; }

    RONDO_HD constexpr step at(rank_t r, int i) const noexcept {
      if (pipelined) {
        int const stage = i / busy();
        i %= busy();
        if (stage != stage_of(i)) return {};
      }
      int const group = g.of(r);
      if (i < inside()) return collect(group, r - g.first(group), i);
      i -= inside();
      if (i < across()) return pass_round(group, r - g.first(group), i);
      return hand_out(group, r - g.first(group), i - across());
    }

   private:
    RONDO_HD constexpr int inside() const noexcept { return g.largest() - 1; }
    RONDO_HD constexpr int turns() const noexcept { return (g.largest() - 1) / g.smallest() + 1; }
    RONDO_HD constexpr int hops() const noexcept { return 2 * (g.count() - 1); }
    RONDO_HD constexpr int across() const noexcept { return hops() * turns(); }
    RONDO_HD constexpr int busy() const noexcept { return 2 * inside() + across(); }

    /// A pipeline has a stage for what comes before the ring, one for what comes after it, and up to four for the ring:
    /// the more of them, the longer it takes to fill.
    RONDO_HD constexpr int hops_of_stage() const noexcept { return (hops() + 3) / 4; }
    RONDO_HD constexpr int stages() const noexcept { return 2 + (hops() > 0 ? (hops() - 1) / hops_of_stage() + 1 : 0); }
    RONDO_HD constexpr int stage_of(int round) const noexcept {
      if (round < inside()) return 0;
      if (round >= inside() + across()) return stages() - 1;
      return 1 + (round - inside()) / turns() / hops_of_stage();
    }

    /// The first slice of rank `local` of a group of `size`; also where the slices of its left neighbour end.
    RONDO_HD constexpr int first_slice(int local, int size) const noexcept {
      return static_cast<int>((static_cast<long long>(local) * g.largest() + size - 1) / size);
    }

    RONDO_HD constexpr rank_t owner(int group, int slice_number) const noexcept {
      long long const share = static_cast<long long>(slice_number) * g.size(group);
      return g.first(group) + static_cast<int>(share / g.largest());
    }

    RONDO_HD constexpr slice chunks_of(int local, int size) const noexcept {
      int const first = first_slice(local, size);
      return {first * g.count(), (first_slice(local + 1, size) - first) * g.count()};
    }

    RONDO_HD constexpr step collect(int group, int local, int i) const noexcept {
      int const size = g.size(group);
      if (i >= size - 1) return {};
      int const to = detail::wrap(local + i + 1, size);
      return {.to = g.first(group) + to,
              .out = chunks_of(to, size),
              .from = g.first(group) + detail::wrap(local - i - 1, size),
              .in = chunks_of(local, size),
              .how = merge::fold,
              .completes = g.count() == 1 && i == size - 2};
    }

    /// Slices whose numbers agree modulo turns() have their ring step in the same round; a rank owns at most one of
    /// them.
    RONDO_HD constexpr step pass_round(int group, int local, int i) const noexcept {
      int const hop = i / turns();
      int const size = g.size(group);
      int const first = first_slice(local, size);
      int const mine = first + detail::wrap(i % turns() - first % turns(), turns());
      if (mine >= first_slice(local + 1, size)) return {};
      step s = ring::all_reduce{g.count()}.at(group, hop);
      s.to = owner(s.to, mine);
      s.from = owner(s.from, mine);
      s.out.first += mine * g.count();
      s.in.first += mine * g.count();
      s.keep = s.keep || turns() > 1 || pipelined;
      return s;
    }

    RONDO_HD constexpr step hand_out(int group, int local, int i) const noexcept {
      int const size = g.size(group);
      if (i >= size - 1) return {};
      int const from = detail::wrap(local - i - 1, size);
      return {.to = g.first(group) + detail::wrap(local + i + 1, size),
              .out = chunks_of(local, size),
              .from = g.first(group) + from,
              .in = chunks_of(from, size)};
    }
  };
};

}  // namespace rondo::inline v0
