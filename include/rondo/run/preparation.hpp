#pragma once

#include <rondo/error.hpp>
#include <rondo/run/job.hpp>
#include <rondo/types.hpp>

#include <string>
#include <string_view>

namespace rondo::inline v0::run {

/// What a request is asked for once the algorithm is known to suit it.
struct preparation {
  void const* request;
  void (*function)(void const* request, run::job&, rank_t, int);
  bool keep_order, ordered;

  template <class Request>
  static preparation of(Request const& request, bool ordered) noexcept {
    auto const prepare = [](void const* r, run::job& j, rank_t rank, int ranks) {
      static_cast<Request const*>(r)->prepare(j, rank, ranks);
    };
    return {&request, prepare, Request::keeps_order, ordered};
  }

  template <class S>
  void check(S const& s, std::string_view name) const {
    if constexpr (requires { s.keeps_rank_order; }) {
      if (keep_order && !s.keeps_rank_order)
        throw invalid_argument(std::string(name) +
                               " reorders operands and the operation is not known to commute: use tree or "
                               "recursive_doubling, or declare the operation commutative");
      if (ordered && !s.uniform_tree)
        throw invalid_argument(std::string(name) +
                               " has a summation tree that depends on the element or is not the canonical one: for "
                               "ordered results use recursive_doubling, binomial or ordered_halving");
    }
  }
};

}  // namespace rondo::inline v0::run
