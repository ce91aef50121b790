#pragma once

#include <rondo/types.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// Sums of ranks' contributions as binary trees, hash-consed: equal trees have equal numbers. Number r < ranks is the
/// contribution of rank r alone.
class expressions {
 public:
  explicit constexpr expressions(int ranks) : ranks_(ranks), words_((ranks + 63) / 64), table_(16, -1) {
    for (int r = 0; r < ranks; ++r) {
      nodes_.push_back({-1, -1, r, r, r + 1});
      members_.resize(members_.size() + static_cast<std::size_t>(words_), 0);
      member_word(r, r / 64) |= std::uint64_t{1} << (r % 64);
    }
  }

  /// left + right; -1 if a rank contributes to both.
  constexpr int fold(int left, int right) {
    for (int w = 0; w < words_; ++w)
      if (member_word(left, w) & member_word(right, w)) return -1;
    return intern(left, right);
  }

  /// Whether every rank contributes.
  constexpr bool complete(int x) {
    for (int w = 0; w < words_; ++w) {
      int const rest = ranks_ - 64 * w;
      if (member_word(x, w) != (rest >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << rest) - 1)) return false;
    }
    return true;
  }

  /// The same number for two trees that differ only by exchanging operands.
  constexpr int commuted(int x) const { return node(x).commuted; }

  /// Whether every fold in it joins neighbouring runs of ranks, the lower one first.
  constexpr bool in_rank_order(int x) const { return node(x).last > 0; }

  /// T(0, b) = rank b; T(k, b) = T(k - 1, 2b) + T(k - 1, 2b + 1), where a block without ranks adds nothing.
  constexpr int canonical() {
    std::vector<int> level(static_cast<std::size_t>(ranks_), 0);
    for (int r = 0; r < ranks_; ++r) level[static_cast<std::size_t>(r)] = r;
    while (level.size() > 1) {
      std::vector<int> next;
      for (std::size_t b = 0; b < level.size(); b += 2)
        next.push_back(b + 1 < level.size() ? fold(level[b], level[b + 1]) : level[b]);
      level = std::move(next);
    }
    return level[0];
  }

 private:
  struct tree {
    int left, right;
    int commuted;
    int first, last;  // ranks [first, last) in order; last == 0 if they are not
  };

  constexpr tree const& node(int x) const { return nodes_[static_cast<std::size_t>(x)]; }

  constexpr std::uint64_t& member_word(int x, int w) {
    return members_[static_cast<std::size_t>(x) * static_cast<std::size_t>(words_) + static_cast<std::size_t>(w)];
  }

  static constexpr std::size_t hash(int left, int right) {
    std::uint64_t const key = (std::uint64_t(std::uint32_t(left)) << 32 | std::uint32_t(right)) * 0x9e3779b97f4a7c15u;
    return static_cast<std::size_t>(key >> 32);
  }

  /// Where (left, right) is in the table, or the free place where it belongs.
  constexpr std::size_t place(int left, int right) const {
    std::size_t const mask = table_.size() - 1;
    std::size_t at = hash(left, right) & mask;
    while (table_[at] >= 0 && (node(table_[at]).left != left || node(table_[at]).right != right)) at = (at + 1) & mask;
    return at;
  }

  constexpr int intern(int left, int right) {
    if (int const known = table_[place(left, right)]; known >= 0) return known;
    int low = commuted(left), high = commuted(right);
    if (low > high) std::swap(low, high);
    bool const is_representative = low == left && high == right;
    int const representative = is_representative ? -1 : intern(low, high);

    int const fresh = static_cast<int>(nodes_.size());
    bool const ordered = in_rank_order(left) && in_rank_order(right) && node(left).last == node(right).first;
    nodes_.push_back({left, right, is_representative ? fresh : representative, ordered ? node(left).first : 0,
                      ordered ? node(right).last : 0});
    members_.resize(members_.size() + static_cast<std::size_t>(words_), 0);
    for (int w = 0; w < words_; ++w) member_word(fresh, w) = member_word(left, w) | member_word(right, w);
    table_[place(left, right)] = fresh;
    if (++used_ * 2 > table_.size()) grow();
    return fresh;
  }

  constexpr void grow() {
    table_ = std::vector<int>(table_.size() * 2, -1);
    for (std::size_t x = static_cast<std::size_t>(ranks_); x < nodes_.size(); ++x)
      table_[place(nodes_[x].left, nodes_[x].right)] = static_cast<int>(x);
  }

  int ranks_;
  int words_;
  std::vector<tree> nodes_;
  std::vector<std::uint64_t> members_;  // words_ of them for each node: the set of ranks that contribute
  std::vector<int> table_;              // open addressing, a power of two, at most half full
  std::size_t used_ = 0;
};

}  // namespace rondo::inline v0::detail
