#pragma once

#include "calls.hpp"
#include "comm.hpp"
#include <rondo/ops.hpp>

#include <span>

namespace rondo::bench {

template <class T>
void perform_reduction(comm& c, call const& what, shape const& s, T const* in, T* out) {
  call_options const options{.deadline = what.deadline, .algorithm = what.how};
  std::span<T const> const from(in, s.in);
  std::span<T> const to(out, s.out);
  auto const with = [&](auto op) {
    switch (what.what) {
      case collective::reduce_scatter: c.reduce_scatter(from, to, op, options); break;
      case collective::reduce:
        if (in == out)
          c.reduce(std::span<T>(out, s.in), op, what.root, options);
        else
          c.reduce(from, to, op, what.root, options);
        break;
      default:
        if (in == out)
          c.all_reduce(to, op, options);
        else
          c.all_reduce(from, to, op, options);
    }
  };
  switch (what.op) {
    case reduction::sum: with(sum); break;
    case reduction::prod: with(prod); break;
    case reduction::min: with(min); break;
    case reduction::max: with(max); break;
    case reduction::avg: with(avg); break;
    case reduction::mulsum: with(premul_sum(mulsum_factor)); break;
  }
}

}  // namespace rondo::bench
