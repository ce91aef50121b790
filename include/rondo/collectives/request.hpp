#pragma once

#include <rondo/algorithm.hpp>
#include <rondo/detail/host_memory.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/element.hpp>
#include <rondo/error.hpp>
#include <rondo/reduce_op.hpp>
#include <rondo/run/job.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

namespace rondo::inline v0::collectives {

/// One call of one rank, as a value: what it was called with, and how to turn that into a job.
///
/// prepare() checks the arguments first and throws invalid_argument before anything is touched.
template <class R>
concept request = std::copy_constructible<R> && requires(R const r, run::job& j, rank_t rank, int ranks) {
  {std::integral_constant<collective, R::kind>{}};
  {std::bool_constant<R::keeps_order>{}};  // the operation does not commute
  { r.root() } -> std::same_as<rank_t>;
  { r.bytes() } -> std::same_as<std::size_t>;
  {r.prepare(j, rank, ranks)};
};

/// A request whose elements are made by their owners where ranks share memory: prepare_owners() fills in the job for
/// that.
template <class R>
concept owned_request = request<R> && requires(R const r, run::job& j, rank_t rank, int ranks) {
  requires R::has_owners;
  {std::integral_constant<std::size_t, R::widest>{}};  // bytes of an element
  {r.prepare_owners(j, rank, ranks)};
};

/// Defaults of requests without root and operation.
struct symmetric {
  static constexpr bool keeps_order = false;
  static constexpr rank_t root() noexcept { return nobody; }
};

/// A request with a root.
struct rooted {
  static constexpr bool keeps_order = false;
  rank_t from_or_to;
  constexpr rank_t root() const noexcept { return from_or_to; }
};

/// Throws invalid_argument with the sentence that the pieces make.
[[noreturn, gnu::cold]] inline void refuse(std::initializer_list<detail::text_piece> pieces) {
  throw invalid_argument(detail::text_of(pieces));
}

/// Throws invalid_argument with the sentence that `otherwise()` makes, which costs nothing while all is well.
template <class Sentence>
void require(bool holds, Sentence&& otherwise) {
  if (!holds) [[unlikely]]
    refuse({otherwise()});
}

inline void check_root(char const* call, rank_t root, int ranks) {
  if (root < 0 || root >= ranks)
    refuse({call, " has root ", root, " among ", ranks, " ranks: give a root from 0 to ", ranks - 1});
}

template <class T>
void check_size(char const* call, char const* name, std::span<T> given, std::size_t needed) {
  if (given.size() != needed)
    refuse({call, " needs ", needed, " elements in its ", name, " buffer, not ", given.size(),
            ": give every rank a buffer of that size"});
}

template <class T>
bool apart(std::span<T const> a, std::span<T const> b) noexcept {
  std::less<T const*> const before;
  return a.empty() || b.empty() || !before(b.data(), a.data() + a.size()) || !before(a.data(), b.data() + b.size());
}

/// Buffers must be one and the same, or apart.
template <class T>
void check_apart(char const* call, std::span<T const> in, std::span<T> out) {
  if (in.data() != out.data() && !apart<T>(in, out))
    refuse({call, " has buffers that overlap in part: pass the same buffer twice, or buffers that are apart"});
}

/// The buffer of one block must be that block of the buffer of all, `first` elements after its beginning, or apart.
template <class T>
void check_place(char const* call, std::span<T const> all, std::size_t first, std::span<T const> block) {
  if (block.data() != all.data() + first && !apart(all, block))
    refuse({call, " has a buffer inside the other one that is not the block of this rank: pass that block, or buffers "
                  "that are apart"});
}

template <class T>
std::byte const* bytes_of(std::span<T const> s) noexcept {
  return reinterpret_cast<std::byte const*>(s.data());
}
template <class T>
std::byte* bytes_of(std::span<T> s) noexcept {
  return reinterpret_cast<std::byte*>(s.data());
}
template <class T>
std::byte* writable_bytes_of(std::span<T const> s) noexcept {
  return reinterpret_cast<std::byte*>(const_cast<T*>(s.data()));
}

/// Throws invalid_argument if the processor, which is to compute with them, does not reach the elements.
template <class T>
void check_reach(std::span<T> s) {
  detail::check_host_memory(reinterpret_cast<std::byte const*>(s.data()), s.size_bytes());
}

/// Copies, unless both are the same place. Throws invalid_argument if the processor does not reach them.
inline void copy_bytes(std::byte* to, std::byte const* from, std::size_t bytes) {
  if (bytes == 0 || to == from) return;
  detail::check_host_memory(to, bytes);
  detail::check_host_memory(from, bytes);
  std::memmove(to, from, bytes);
}

template <class T>
inline constexpr short_name type_mark = to_short_name(type_name<T>());
template <class Op>
inline short_name const op_mark = to_short_name(op_name<Op>());

/// What the fingerprint says about elements and operation.
template <class T>
void mark_type(run::job& j, std::size_t count) {
  j.math.element = sizeof(T);
  j.mark.count = count;
  j.mark.type = type_mark<T>;
}
template <class T, class Op>
void mark_operation(run::job& j, std::size_t count) {
  j.mark.count = count;
  j.mark.type = type_mark<T>;
  j.mark.op = op_mark<Op>;
}

/// Hash of block sizes (FNV-1a), so that ranks that disagree about them find out.
inline std::uint64_t shape_of(std::span<std::size_t const> counts) noexcept {
  std::uint64_t hash = 14695981039346656037U;
  for (std::size_t const n : counts) hash = (hash ^ n) * 1099511628211U;
  return hash;
}

inline std::size_t total(std::span<std::size_t const> counts) noexcept {
  std::size_t sum = 0;
  for (std::size_t const n : counts) sum += n;
  return sum;
}

/// Block sizes of a call in which all blocks are alike, or which brings its own.
class blocks {
 public:
  explicit blocks(std::size_t each) noexcept : each_(each) {}
  explicit blocks(std::span<std::size_t const> counts) noexcept : counts_(counts), own_(true) {}

  std::size_t operator[](std::size_t i) const noexcept { return own_ ? counts_[i] : each_; }
  std::size_t sum(int ranks) const noexcept { return own_ ? total(counts_) : each_ * static_cast<std::size_t>(ranks); }
  std::uint64_t shape() const noexcept { return own_ ? shape_of(counts_) : 0; }

  void check(char const* call, int ranks) const {
    if (own_ && counts_.size() != static_cast<std::size_t>(ranks))
      refuse({call, " needs one count for each of ", ranks, " ranks, not ", counts_.size()});
  }

  /// Elements before the block of a rank.
  std::size_t before(rank_t rank) const noexcept {
    auto const i = static_cast<std::size_t>(rank);
    return own_ ? total(counts_.first(i)) : each_ * i;
  }

  /// Calls f(rank, elements before its block, elements of its block) for every rank.
  template <class F>
  void each(int ranks, F&& f) const {
    std::size_t before = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(ranks); ++i) {
      f(i, before, (*this)[i]);
      before += (*this)[i];
    }
  }

 private:
  std::size_t each_ = 0;
  std::span<std::size_t const> counts_;
  bool own_ = false;
};

}  // namespace rondo::inline v0::collectives
