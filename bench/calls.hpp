#pragma once

#include "collective.hpp"
#include "datatype.hpp"
#include "world.hpp"
#include <rondo/algorithm.hpp>
#include <rondo/types.hpp>

#include <chrono>
#include <cstddef>

namespace rondo::bench {

/// One call of the library, chosen at run time.
struct call {
  collective what = collective::all_reduce;
  datatype type = datatype::float32;
  reduction op = reduction::sum;
  algorithm how = algorithm::automatic;
  rank_t root = 0;
  std::chrono::milliseconds deadline{0};
};

/// Makes the call. in and out hold the elements that the shape says; in == out, or a block of it, is a call in place.
void perform(comm& c, call const& what, shape const& s, void const* in, void* out);

/// The algorithm that `automatic` means for a buffer of that size.
algorithm chosen(comm& c, collective what, std::size_t bytes) noexcept;

/// Whether the call can be made out of place, respectively in place.
bool has_out_of_place(collective what) noexcept;
bool has_in_place(collective what) noexcept;

/// The reducing calls for one type, in a translation unit of its own to keep each small.
template <class T>
void perform_reduction(comm& c, call const& what, shape const& s, T const* in, T* out);

}  // namespace rondo::bench
