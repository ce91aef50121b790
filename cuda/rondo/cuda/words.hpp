#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/board.hpp>
#include <rondo/cuda/session.hpp>
#include <rondo/types.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace rondo::inline v0::device {

/// Values that travel as words: 4 bytes of data and the number of the window that they belong to, stored in one piece.
/// Whoever sees the number has the data: no flag, no barrier, for twice the bytes. The protocol LL of NCCL (Hu et al.,
/// Demystifying NCCL, 2025, section III).
template <class V>
struct in_words {
  static_assert(sizeof(V) % 4 == 0, "words have 4 bytes each");
  static constexpr std::size_t count = sizeof(V) / 4;

  /// Stores a value at `place`, in a peer's memory.
  template <class Context>
  RONDO_HD static void put(Context& context, std::uint64_t* place, V const& value, flag window) {
    auto const data = std::bit_cast<words>(value);
    for (std::size_t w = 0; w < count; ++w)
      context.store_relaxed(place[w], std::uint64_t{tag(window)} << 32 | data.values[w]);
  }

  /// Waits for the value of `peer` at `place`, in own memory. False as wait_until().
  template <class Context, int Ranks>
  RONDO_HD static bool get(Context& context, link<Ranks> const& ranks, rank_t peer, std::uint64_t* place, V& value,
                           flag window) {
    words data;
    for (std::size_t w = 0; w < count; ++w) {
      std::uint64_t seen = 0;
      auto const look = [&] {
        seen = context.load_relaxed(place[w]);
        return static_cast<flag>(seen >> 32);
      };
      if (!wait_until(context, ranks, peer, tag(window), look)) return false;
      data.values[w] = static_cast<std::uint32_t>(seen);
    }
    value = std::bit_cast<V>(data);
    return true;
  }

 private:
  struct words {
    std::uint32_t values[count];
  };

  /// Memory that was zeroed has no words of window 0.
  RONDO_HD static constexpr flag tag(flag window) noexcept { return window + 1; }
};

}  // namespace rondo::inline v0::device
