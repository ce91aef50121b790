#pragma once

#include <rondo/algorithm.hpp>
#include <rondo/schedule/terms.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace rondo::inline v0 {

/// What messages of a call travel through, as far as the choice of an algorithm goes.
enum class link : std::uint8_t {
  shared_memory,  ///< streams in memory of one host: shm, in_process
  tcp,
  other  ///< a network of its own, such as a user's transport
};

/// The kind of link of a transport with that name, between hosts if it makes a difference between them.
constexpr link link_of(std::string_view transport) noexcept {
  if (transport == "shm" || transport == "in_process") return link::shared_memory;
  return transport == "tcp" || transport == "multi" ? link::tcp : link::other;
}

/// The kind of its links within a host.
constexpr link link_inside(std::string_view transport) noexcept {
  return transport == "multi" ? link::shared_memory : link_of(transport);
}

/// Constants of a kind of link: those of Hockney's model, and two that decide among algorithms that are alike in it.
struct link_constants {
  std::uint64_t alpha;  ///< nanoseconds of a message that waits for the one before
  std::uint64_t gap;    ///< nanoseconds of one that does not
  std::uint64_t beta;   ///< picoseconds of a byte on the way
  std::uint64_t gamma;  ///< picoseconds of a byte folded
};

/// Measured by `rondo compare --transport shm,tcp` with --ranks 2 --collective all_gather (alpha, beta), reduce_scatter
/// (gamma), on a virtual machine with 2 cores of an AMD EPYC (Zen 3), Linux 6.18, over loopback; gap is a third of
/// alpha. `other` is 100 Gbit/s Ethernet by its data sheet, with the latency of its TCP. `turns`: there are more ranks
/// than cores, and a message costs a change of processes; over TCP each does, whether it waits or not. These are round
/// numbers by which the model errs little among what `rondo perf --algorithm all` measures with 3, 4 and 8 ranks there.
constexpr link_constants constants_of(link l, bool turns = false) noexcept {
  if (l == link::shared_memory)
    return {.alpha = turns ? 3000U : 500U, .gap = turns ? 1000U : 170U, .beta = 300, .gamma = 200};
  if (l == link::tcp)
    return {.alpha = turns ? 20000U : 9000U, .gap = turns ? 18000U : 3000U, .beta = 700, .gamma = 350};
  return {.alpha = turns ? 36000U : 25000U, .gap = turns ? 17000U : 2000U, .beta = 85, .gamma = 100};
}

/// Per cent: what a byte costs because it crosses others on its way. Measured as above with --ranks 3,4,8: halving over
/// ring took 1.1 to 1.4 times as long; a direct exchange is level with it, and last by what it asks of a receiver.
constexpr std::uint64_t crossing(paths p) noexcept {
  return p == paths::pairs ? 125 : p == paths::everybody ? 103 : 100;
}

/// What the choice of an algorithm depends on.
struct situation {
  rondo::collective collective;
  std::size_t bytes;  ///< of the whole buffer of one rank
  int ranks;
  bool keep_order = false;                       ///< the operation does not commute
  bool ordered = false;                          ///< every element must have the canonical summation tree
  bool shared_memory = false;                    ///< the ranks share memory that the call can go through
  bool turns = false;                            ///< there are more ranks than cores
  rondo::link link = rondo::link::other;         ///< between hosts, if there are several
  rondo::link link_inside = rondo::link::other;  ///< within a host; asked for only if there are several
  int hosts = 1;                                 ///< that the ranks run on, neighbours on the same one
  int most_on_host = 1;                          ///< asked for only if there are several
};

/// May the algorithm do the call?
constexpr bool admits(situation const& s, terms const& t) noexcept {
  return t.offered && (t.keeps_order || !s.keep_order) && (t.ordered || !s.ordered);
}
constexpr bool admits(situation const& s, algorithm a) noexcept {
  if (a == algorithm::direct && s.collective == collective::all_reduce) return s.shared_memory;
  return admits(s, terms_of(a, s.collective, s.ranks, s.bytes));
}

/// What hierarchical asks of the busiest rank within its host, and between hosts. One link carries what all ranks of a
/// host send to others, so that `sent` between hosts is the whole host's.
struct host_terms {
  terms inside, between;
};
constexpr host_terms host_terms_of(situation const& s, std::size_t bytes) noexcept {
  auto const most = static_cast<std::uint64_t>(s.most_on_host), hosts = static_cast<std::uint64_t>(s.hosts);
  std::uint64_t const others = bytes - bytes / most, abroad = bytes - bytes / hosts;
  return {{.rounds = most > 1 ? 2U : 0U, .more = most > 2 ? 2 * (most - 2) : 0, .sent = 2 * others, .folded = others},
          {.rounds = 2 * (hosts - 1), .sent = 2 * abroad, .folded = abroad / most}};
}

/// Picoseconds that the terms take over the link, by the model.
constexpr std::uint64_t predicted(terms const& t, link_constants const& c) noexcept {
  return (t.rounds * c.alpha + t.more * c.gap) * 1000 + t.sent / 100 * c.beta * crossing(t.paths) +
         t.sent % 100 * c.beta + t.folded * c.gamma;
}

/// Picoseconds that a call with buffers of `bytes` takes by an algorithm, by the model. Between hosts the ranks of one
/// share a link, where those of a ring do not meet, nor those of an ordered halving, which sends little that far.
constexpr std::uint64_t predicted(situation const& s, algorithm a, std::size_t bytes) noexcept {
  link_constants const across = constants_of(s.link, s.turns);
  terms const t = terms_of(a, s.collective, s.ranks, bytes);
  if (s.hosts <= 1) return predicted(t, across);
  link_constants const inside = constants_of(s.link_inside, s.turns);
  if (a == algorithm::hierarchical && s.collective == collective::all_reduce) {
    host_terms const h = host_terms_of(s, bytes);
    auto const [shorter, longer] = std::minmax({predicted(h.inside, inside), predicted(h.between, across)});
    std::size_t const chunk = bytes / static_cast<std::size_t>(s.hosts * s.most_on_host);
    return longer + (chunk >= detail::pipelined_bytes ? shorter / (chunk / detail::segment_bytes) : shorter);
  }
  auto const ranks = static_cast<std::uint64_t>(s.ranks), most = static_cast<std::uint64_t>(s.most_on_host);
  bool const apart = t.paths == paths::neighbours || a == algorithm::ordered_halving;
  std::uint64_t const abroad = apart ? t.sent : t.sent / ranks * (ranks - most) * most;
  terms slowed = t;
  slowed.sent = std::max(t.sent, abroad);
  link_constants slower = across;
  slower.beta = std::max(across.beta, inside.beta);
  return predicted(slowed, slower);
}

/// The algorithms with a schedule; of those that are level the first is chosen.
inline constexpr std::array scheduled_algorithms{algorithm::recursive_doubling,
                                                 algorithm::recursive_halving,
                                                 algorithm::ordered_halving,
                                                 algorithm::direct,
                                                 algorithm::ring,
                                                 algorithm::binomial,
                                                 algorithm::mixed_radix,
                                                 algorithm::bidirectional_ring,
                                                 algorithm::tree,
                                                 algorithm::double_tree,
                                                 algorithm::hierarchical};

/// The size by which the model chooses for a buffer: the power of two below, so that a few choices serve all sizes.
constexpr std::size_t size_class(std::size_t bytes) noexcept { return std::bit_floor(bytes); }

/// The algorithm for a call: direct for an all_reduce through shared memory, else the fastest by the model, for the
/// class of its size, of those that the call admits. A pure function of values that all ranks share, in whole numbers,
/// so that all choose alike.
constexpr algorithm select(situation const& s) noexcept {
  if (s.shared_memory && s.collective == collective::all_reduce) return algorithm::direct;
  algorithm best = algorithm::direct;
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (algorithm const a : scheduled_algorithms) {
    if (!admits(s, a)) continue;
    std::uint64_t const time = predicted(s, a, size_class(s.bytes));
    if (time < least) {
      least = time;
      best = a;
    }
  }
  return best;
}

}  // namespace rondo::inline v0
