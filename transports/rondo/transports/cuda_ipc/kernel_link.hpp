#pragma once

#include <rondo/cuda/board.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>
#include <rondo/transports/cuda_ipc/basic_cuda_ipc.hpp>
#include <rondo/transports/cuda_ipc/runtime.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace rondo::inline v0 {

/// What kernels of `Ranks` ranks have to know about each other, over the arenas of a transport. `report` lies where the
/// host and the device reach it, in pinned memory; it and the transport outlive the kernels. The arenas are for one
/// link at a time, with the same shape on every rank. What kernels count they count in the arenas, so a graph that has
/// captured them may be launched again and again.
///
/// Throws invalid_argument for another number of ranks, or an arena in which the shape finds no room.
template <int Ranks, device_runtime R>
device::link<Ranks> kernel_link(basic_cuda_ipc<R> const& x, device::arena_shape const& shape, device::fault* report,
                                std::chrono::nanoseconds patience) {
  if (x.size() != Ranks)
    throw invalid_argument(detail::text_of({"kernels for ", Ranks, " ranks cannot be linked over ", x.size(),
                                            ": choose the kernels by the size of the transport"}));
  std::size_t const room = x.arena(x.rank()).size();
  if (!shape.fits(Ranks) || shape.bytes(Ranks) > room)
    throw invalid_argument(detail::text_of({"an arena of ", room, " bytes has no room for kernels, which need ",
                                            shape.bytes(Ranks), ": connect with that as arena_bytes on every rank"}));
  device::link<Ranks> ranks{.rank = x.rank(),
                            .arenas = {},
                            .shape = shape,
                            .report = report,
                            .patience = static_cast<std::uint64_t>(patience.count())};
  for (rank_t q = 0; q < Ranks; ++q) ranks.arenas[q] = x.arena(q).data();
  return ranks;
}

}  // namespace rondo::inline v0
