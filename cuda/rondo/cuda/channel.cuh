#pragma once

#include <rondo/cuda/board.hpp>
#include <rondo/cuda/launch.cuh>
#include <rondo/cuda/report.cuh>
#include <rondo/cuda/stream.cuh>
#include <rondo/error.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

namespace rondo::inline v0::device {

/// A rank's end of what kernels of all ranks share: launches them one after the other, whatever streams they come from,
/// and says what went wrong.
///
/// Not for two threads at once. Launches that a graph captures stay on the captured stream; such a stream has a channel
/// of its own.
template <int Ranks>
class channel {
 public:
  /// `arenas` are those of all ranks as this process and this device address them, of shape.bytes(Ranks) each, aligned
  /// to 128 bytes; their owners have zeroed them already. `patience` is the longest wait of a kernel for a peer.
  channel(rank_t rank, arena_shape const& shape, std::array<std::byte*, Ranks> const& arenas,
          std::chrono::nanoseconds patience = std::chrono::minutes(5))
      : ranks_{.rank = rank,
               .arenas = {},
               .shape = shape,
               .report = report_.on_device(),
               .patience = static_cast<std::uint64_t>(patience.count())} {
    shape.check(Ranks);
    for (std::size_t q = 0; q < Ranks; ++q) ranks_.arenas[q] = arenas[q];
  }

  /// What kernels of this rank are made with.
  link<Ranks> const& ranks() const noexcept { return ranks_; }

  /// Launches a kernel after all that were launched before, and after what `stream` has to do. Returns at once.
  /// Throws what a kernel before has reported.
  template <class Kernel>
  void launch(Kernel const& kernel, unsigned blocks, unsigned threads, cudaStream_t stream) {
    check();
    order_.follow(stream);
    device::launch(kernel, blocks, threads, stream);
  }

  /// Throws deadline_exceeded if a kernel had to give up. Says nothing yet about kernels that still run.
  void check() const {
    if (report_.raised() == fault::none) return;
    fault const& seen = report_.on_host();
    if (seen.peer == nobody) throw error("the kernels of this channel were told to stop", nobody);
    throw deadline_exceeded("block " + std::to_string(seen.block) + " of rank " + std::to_string(seen.rank) +
                                " waited in vain for rank " + std::to_string(seen.peer) + " on the device",
                            seen.peer);
  }

  /// Ends all waits of kernels of this rank. The channel is of no use afterwards.
  void stop() noexcept { report_.raise(fault::told_to_stop); }

 private:
  report report_;
  link<Ranks> ranks_;
  launch_order order_;
};

}  // namespace rondo::inline v0::device
