#pragma once

#include <rondo/algorithm.hpp>
#include <rondo/collectives/request.hpp>
#include <rondo/element.hpp>
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
      : prepare_([](void const* box, run::job& j, rank_t rank, int ranks) {
          auto const& own = *static_cast<Request const*>(box);
          own.prepare(j, rank, ranks);
          if constexpr (C == collective::all_reduce) own.fold_at_once(j);
        }),
        root_(r.root()), bytes_(r.bytes()) {
    static_assert(Request::kind == C && !Request::keeps_order && std::is_trivially_copyable_v<Request>);
    static_assert(sizeof(Request) <= sizeof box_ && alignof(Request) <= alignof(void*));
    ::new (box_.data()) Request(r);
  }

  rank_t root() const noexcept { return root_; }
  std::size_t bytes() const noexcept { return bytes_; }
  void prepare(run::job& j, rank_t rank, int ranks) const { prepare_(box_.data(), j, rank, ranks); }

  /// All contributions may be folded at once: prepare() has said how.
  void fold_at_once(run::job&) const noexcept requires(C == collective::all_reduce) {}

 private:
  alignas(void*) std::array<std::byte, 88> box_;
  void (*prepare_)(void const* box, run::job&, rank_t, int);
  rank_t root_;
  std::size_t bytes_;
};

}  // namespace rondo::inline v0::nccl
