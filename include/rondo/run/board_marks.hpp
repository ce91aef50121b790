#pragma once

#include <rondo/fingerprint.hpp>
#include <rondo/memory.hpp>
#include <rondo/run/marks.hpp>
#include <rondo/transport.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace rondo::inline v0::run {

/// What the flags between two ranks say about the windows of a call over boards.
enum window_signal : int { arrival, result, credit };  // contributions are here, results are here, it was emptied

/// A board begins with the fingerprints of the calls of each rank, in turn one of two.
constexpr std::size_t board_marks_bytes(int ranks) noexcept {
  return 2 * static_cast<std::size_t>(ranks) * sizeof(fingerprint);
}

/// The fingerprint that `from` left on the board of `owner` for its call number `call` over boards.
template <addressable X>
fingerprint& board_mark(X const& transport, rank_t owner, rank_t from, std::uint64_t call) {
  auto* const all = reinterpret_cast<fingerprint*>(transport.board(owner).data());
  return all[call % 2 * static_cast<std::size_t>(transport.size()) + static_cast<std::size_t>(from)];
}

/// A rank that is in a call over boards which this rank has not made, though it should be in the call of `mine`: the
/// same collective, or a message from or to that rank. Ranks that are merely ahead are left alone.
template <transport X>
std::optional<disagreement> stray_on_boards(X& transport, workspace const& memory, fingerprint const& mine,
                                            rank_t awaited) {
  if constexpr (addressable<X>) {
    rank_t const me = transport.rank();
    if (transport.board(me).empty()) return {};
    for (rank_t q = 0; q < transport.size(); ++q) {
      if (q == me || transport.flag(me, q, arrival).load(std::memory_order_acquire) <= memory.windows) continue;
      fingerprint const theirs = board_mark(transport, me, q, memory.board_calls);
      if (mine.sequence != 0 ? theirs.sequence == mine.sequence : q == awaited) return disagreement{q, mine, theirs};
    }
  }
  return {};
}

}  // namespace rondo::inline v0::run
