#pragma once

#include <rondo/algorithm.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>
#include <rondo/run/job.hpp>
#include <rondo/types.hpp>

#include <cstddef>
#include <string_view>

namespace rondo::inline v0::run {

/// A request, its types erased: what must be known to choose an algorithm for it, and what turns it into a job once the
/// algorithm is known to suit it.
struct preparation {
  void const* request;
  void (*function)(void const* request, run::job&, rank_t, int);
  void (*of_owners)(void const* request, run::job&, rank_t, int);  ///< where the owners of elements make the result
  std::size_t widest;                                              ///< of an element, in bytes, for these
  std::size_t bytes;
  std::size_t wide_bytes;  ///< of an element as it is folded; 0: the request folds nothing through shared memory
  rank_t root;
  bool keep_order;

  /// `AtOnce`: the contributions may be folded all at once, if the collective has that. `Owned`: the owners of elements
  /// may make the result.
  template <bool AtOnce, bool Owned, class Request>
  static preparation of(Request const& request) noexcept {
    constexpr bool at_once = AtOnce && requires(run::job & j) { request.fold_at_once(j); };
    auto const prepare = [](void const* r, run::job& j, rank_t rank, int ranks) {
      auto const& own = *static_cast<Request const*>(r);
      own.prepare(j, rank, ranks);
      if constexpr (at_once) own.fold_at_once(j);
    };
    preparation p{.request = &request,
                  .function = prepare,
                  .of_owners = nullptr,
                  .widest = 0,
                  .bytes = request.bytes(),
                  .wide_bytes = 0,
                  .root = request.root(),
                  .keep_order = Request::keeps_order};
    if constexpr (at_once) p.wide_bytes = Request::wide_bytes;
    if constexpr (Owned) {
      p.of_owners = [](void const* r, run::job& j, rank_t rank, int ranks) {
        static_cast<Request const*>(r)->prepare_owners(j, rank, ranks);
      };
      p.widest = Request::widest;
    }
    return p;
  }

  /// Throws invalid_argument if the call must keep what such a schedule does not.
  template <class S>
  void check(S const& s, algorithm a, bool ordered) const {
    if constexpr (requires { s.keeps_rank_order; }) {
      if (keep_order && !s.keeps_rank_order)
        refuse(a, " reorders operands and the operation is not known to commute: use tree or recursive_doubling, or "
                  "declare the operation commutative");
      if (ordered && !s.uniform_tree)
        refuse(a, " has a summation tree that depends on the element or is not the canonical one: for ordered results "
                  "use recursive_doubling, binomial or ordered_halving");
    }
  }

 private:
  [[noreturn, gnu::cold]] static void refuse(algorithm a, std::string_view why) {
    throw invalid_argument(detail::text_of({to_string(a), why}));
  }
};

}  // namespace rondo::inline v0::run
