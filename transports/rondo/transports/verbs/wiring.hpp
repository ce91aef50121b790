#pragma once

#include <rondo/error.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace rondo::inline v0::detail {

/// What a rank tells the others before they connect, as hexadecimal numbers with blanks between them:
///
///     version rails stripe slots slot_bytes
///     ethernet gid gid lid mtu memory key      for each rail: its port, and where this rank's memory lies
///     number psn                               for each rank, for each rail: the queue pair for it
struct verbs_wiring {
  static constexpr std::uint64_t version = 1;

  struct rail {
    bool ethernet = false;
    std::array<std::uint8_t, 16> gid{};
    std::uint16_t lid = 0;
    std::uint8_t mtu = 0;      ///< a value of ibv_mtu
    std::uint64_t memory = 0;  ///< address of the first ring
    std::uint32_t key = 0;
  };
  struct queue_pair {
    std::uint32_t number = 0, psn = 0;
  };

  std::uint64_t stripe = 0, slots = 0, slot_bytes = 0;
  std::vector<rail> rails;
  std::vector<queue_pair> queue_pairs;  ///< by rank and rail

  queue_pair const& of(rank_t peer, std::size_t rail) const noexcept {
    return queue_pairs[static_cast<std::size_t>(peer) * rails.size() + rail];
  }

  bool same_shape(verbs_wiring const& other) const noexcept {
    return rails.size() == other.rails.size() && stripe == other.stripe && slots == other.slots &&
           slot_bytes == other.slot_bytes;
  }

  std::string encode() const {
    std::string text;
    auto const add = [&](std::uint64_t n) {
      std::array<char, 16> digits;
      text.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), n, 16).ptr) += ' ';
    };
    for (auto const n : {version, std::uint64_t{rails.size()}, stripe, slots, slot_bytes}) add(n);
    for (auto const& r : rails) {
      add(r.ethernet ? 1 : 0);
      for (std::size_t half = 0; half < 16; half += 8) {
        std::uint64_t word = 0;
        for (std::size_t i = 0; i < 8; ++i) word = word << 8 | r.gid[half + i];
        add(word);
      }
      for (auto const n : {std::uint64_t{r.lid}, std::uint64_t{r.mtu}, r.memory, std::uint64_t{r.key}}) add(n);
    }
    for (auto const& q : queue_pairs) {
      add(q.number);
      add(q.psn);
    }
    return text;
  }

  /// Throws connect_error, which names the rank, for a text that encode() does not write among `ranks` ranks.
  static verbs_wiring decode(std::string_view text, rank_t from, int ranks) {
    constexpr std::uint64_t most_rails = 64;
    bool good = true;
    auto const number = [&](std::uint64_t most = ~std::uint64_t{0}) {
      std::uint64_t n = 0;
      auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), n, 16);
      good = good && code == std::errc{} && end != text.data() + text.size() && *end == ' ' && n <= most;
      if (good) text.remove_prefix(static_cast<std::size_t>(end + 1 - text.data()));
      return good ? n : 0;
    };
    verbs_wiring w;
    good = number() == version;
    w.rails.resize(number(most_rails));
    w.stripe = number();
    w.slots = number();
    w.slot_bytes = number();
    for (auto& r : w.rails) {
      r.ethernet = number(1) == 1;
      for (std::size_t half = 0; half < 16; half += 8) {
        auto const word = number();
        for (std::size_t i = 0; i < 8; ++i) r.gid[half + i] = static_cast<std::uint8_t>(word >> 8 * (7 - i));
      }
      r.lid = static_cast<std::uint16_t>(number(0xffff));
      r.mtu = static_cast<std::uint8_t>(number(0xff));
      r.memory = number();
      r.key = static_cast<std::uint32_t>(number(0xffffffff));
    }
    w.queue_pairs.resize(w.rails.size() * static_cast<std::size_t>(ranks));
    for (auto& q : w.queue_pairs) {
      q.number = static_cast<std::uint32_t>(number(0xffffff));
      q.psn = static_cast<std::uint32_t>(number(0xffffff));
    }
    if (good && text.empty()) return w;
    throw connect_error("rank " + std::to_string(from) +
                            " sent RDMA addresses that cannot be read; run the same version everywhere",
                        from);
  }
};

}  // namespace rondo::inline v0::detail
