#pragma once

#include <rondo/detail/announce.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/group.hpp>
#include <rondo/transports/cuda_ipc/device_streams.hpp>
#include <rondo/transports/cuda_ipc/lent_memory.hpp>
#include <rondo/transports/cuda_ipc/runtime.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace rondo::inline v0::detail {

using probe_text = std::array<std::uint32_t, 1024>;

/// What is written to find out whether it arrives: different for every pair, direction and turn.
inline probe_text probe_pattern(rank_t owner, rank_t other, unsigned turn) noexcept {
  probe_text text;
  auto x = static_cast<std::uint32_t>(owner * 1024 + other) * 8 + turn + 1;
  for (auto& word : text) word = x = x * 1664525 + 1013904223;
  return text;
}

/// Writes to and reads from the memory of every other rank, and compares what arrives: a platform's claim that devices
/// reach each other is no evidence. Every rank must call; blocks until all have. All throw connect_error, which names a
/// rank, if a byte is wrong anywhere. Needs the rings alone, in which nothing has been sent yet.
template <device_runtime R>
void probe_peer_access(group& ranks, R const& runtime, lent_memory<R> const& memory, ring_layout const& rings,
                       typename R::stream stream, group::clock::time_point deadline) {
  rank_t const me = ranks.rank();
  auto const store = [&](std::byte* to, probe_text const& text) {
    runtime.copy(to, reinterpret_cast<std::byte const*>(text.data()), sizeof text, stream);
    runtime.wait(stream);
  };
  auto const holds = [&](std::byte const* from, probe_text const& expected) {
    probe_text text{};
    runtime.copy(reinterpret_cast<std::byte*>(text.data()), from, sizeof text, stream);
    runtime.wait(stream);
    return text == expected;
  };
  auto const on_all = [&](auto const& each) {
    announce(
        ranks, "use the memory of another rank's device",
        [&] {
          for (rank_t q = 0; q < ranks.size(); ++q)
            if (q != me) each(q);
          return std::string();
        },
        deadline);
  };
  auto const require = [](bool right, char const* what, rank_t q) {
    if (!right)
      throw device_error(text_of({what, " rank ", q,
                                  " is wrong, although the platform says that the two devices reach each other: switch "
                                  "ACS and the IOMMU off for them, or use another transport"}),
                         q);
  };
  for (unsigned turn = 0; turn < 4; turn += 2) {  // a second time, over what the first has left there
    on_all([&](rank_t q) { store(memory.of(q) + rings.at(q, me), probe_pattern(q, me, turn)); });
    on_all([&](rank_t q) {
      std::byte* const place = memory.of(me) + rings.at(me, q);
      require(holds(place, probe_pattern(me, q, turn)), "what it got from", q);
      store(place, probe_pattern(me, q, turn + 1));
    });
    on_all([&](rank_t q) {
      require(holds(memory.of(q) + rings.at(q, me), probe_pattern(q, me, turn + 1)), "what it reads from", q);
    });
  }
}

}  // namespace rondo::inline v0::detail
