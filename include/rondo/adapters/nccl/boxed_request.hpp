#pragma once

#include <rondo/algorithm.hpp>
#include <rondo/collectives/request.hpp>
#include <rondo/element.hpp>
#include <rondo/run/preparation.hpp>
#include <rondo/types.hpp>

#include <array>
#include <cstddef>
#include <new>
#include <type_traits>

namespace rondo::inline v0::nccl {

/// A request of one collective whose element type and operation are known at run time only: what runs requests is
/// compiled once for each collective, not once for each type and operation as well. Models collectives::request.
template <collective C>
class boxed_request {
 public:
  static constexpr collective kind = C;
  static constexpr bool keeps_order = false;
  static constexpr std::size_t wide_bytes = sizeof(detail::int128);  // the widest type in which a mean is summed

  template <class Request>
  explicit boxed_request(Request const& r) noexcept
      : inside_(run::preparation::of<C == collective::all_reduce, false>(r)) {
    static_assert(Request::kind == C && !Request::keeps_order && std::is_trivially_copyable_v<Request>);
    static_assert(sizeof(Request) <= sizeof box_ && alignof(Request) <= alignof(void*));
    ::new (box_.data()) Request(r);
  }

  rank_t root() const noexcept { return inside_.root; }
  std::size_t bytes() const noexcept { return inside_.bytes; }
  void prepare(run::job& j, rank_t rank, int ranks) const { inside_.function(box_.data(), j, rank, ranks); }

  /// All contributions may be folded at once: prepare() has said how.
  void fold_at_once(run::job&) const noexcept requires(C == collective::all_reduce) {}

 private:
  alignas(void*) std::array<std::byte, 88> box_;
  run::preparation inside_;  // of what lies in the box
};

}  // namespace rondo::inline v0::nccl
