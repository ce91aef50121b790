#pragma once

#include <rondo/schedule.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <vector>

namespace rondo::inline v0 {

/// What a message of n bytes costs: alpha + n * beta seconds on the way and, where it is folded, n * gamma afterwards.
/// A link is also the simplest network: the same between all ranks.
struct link_cost {
  double alpha = 0;  ///< seconds a message
  double beta = 0;   ///< seconds a byte
  double gamma = 0;  ///< seconds a byte folded

  constexpr link_cost operator()(rank_t, rank_t) const noexcept { return *this; }
};

/// Ranks q * ranks_per_host … (q + 1) * ranks_per_host - 1 live on host q. Links are not shared: a host whose ranks
/// send at the same time through one card needs a `between` that is as much slower.
struct two_level_network {
  link_cost inside;
  link_cost between;
  int ranks_per_host = 1;

  constexpr link_cost operator()(rank_t from, rank_t to) const noexcept {
    return from / ranks_per_host == to / ranks_per_host ? inside : between;
  }
};

/// A function from (sender, receiver) to the link between them.
template <class N>
concept network = requires(N const net, rank_t r) {
  { net(r, r) } -> std::convertible_to<link_cost>;
};

/// What a schedule costs. The last three are those of the rank that has most of each.
struct estimate {
  double seconds = 0;  ///< until the last rank has finished
  int messages = 0;    ///< sent by a rank
  double sent = 0;     ///< bytes
  double folded = 0;   ///< bytes
};

namespace detail {

/// Clocks of one rank: when its send side and its receive side are free, and what it has received of each segment.
struct rank_clock {
  double send_free = 0;
  double receive_free = 0;
  double start = 0;  // of the message that it sends in this round
  step now{};
  estimate spent{};
};

/// The two latest receives of a segment. Two are enough to let the two directions of a ring, or two trees, that take
/// turns run independently; an older dependency counts like the second latest, which finished no earlier.
struct arrivals {
  struct arrival {
    slice what{};
    double when = 0;
  };
  std::array<arrival, 2> latest{};

  constexpr void add(slice what, double when) { latest = {arrival{what, when}, latest[0]}; }

  constexpr double ready(slice out, int chunks) const {
    auto const touches = [&](slice in) {
      int const ahead = out.first >= in.first ? out.first - in.first : out.first - in.first + chunks;
      return in.count > 0 && (ahead < in.count || chunks - ahead < out.count);
    };
    return touches(latest[0].what) ? latest[0].when : latest[1].when;
  }
};

}  // namespace detail

/// Runs the schedule on a clock: `bytes` is the size of the whole buffer, cut into `segments` that overlap as law 3
/// allows.
///
/// The model (Hockney's, with the order of the executor): each rank has one send side and one receive side, which run
/// at the same time. A message starts when the send side is free and the chunks that it carries are here; it ends alpha
/// + bytes * beta later. What comes in while the receiver takes, or folds, something else queues up; and a receive does
/// not end before the sends of earlier rounds. Pairs of ranks do not get into each other's way.
///
/// Time O(segments * rounds * ranks): log-step schedules of 65,536 ranks take well under a second, rings of 4,096 some.
template <schedule S, network N>
constexpr estimate cost(S const& s, double bytes, N const& net, int segments = 1) {
  int const ranks = s.ranks(), rounds = s.rounds(), period = s.period();
  auto const index = [](int x) { return static_cast<std::size_t>(x); };
  double const chunk = bytes / segments / std::max(1, s.chunks());
  std::vector<detail::rank_clock> clocks(index(ranks), detail::rank_clock{});
  std::vector<detail::arrivals> arrived(index(ranks) * index(segments), detail::arrivals{});

  auto const play = [&](int segment, int round) {
    for (rank_t r = 0; r < ranks; ++r) {
      detail::rank_clock& mine = clocks[index(r)];
      mine.now = s.at(r, round);
      if (mine.now.to == nobody) continue;
      double const ready = arrived[index(segment) * index(ranks) + index(r)].ready(mine.now.out, s.chunks());
      mine.start = std::max(mine.send_free, ready);
    }
    for (rank_t r = 0; r < ranks; ++r) {
      detail::rank_clock& mine = clocks[index(r)];
      if (mine.now.from != nobody) {
        link_cost const wire = net(mine.now.from, r);
        double const size = chunk * mine.now.in.count;
        double const there = clocks[index(mine.now.from)].start + wire.alpha;
        mine.receive_free = std::max(std::max(there, mine.receive_free) + size * wire.beta, mine.send_free);
        if (mine.now.how != merge::overwrite) {
          mine.receive_free += size * wire.gamma;
          mine.spent.folded += size;
        }
        arrived[index(segment) * index(ranks) + index(r)].add(mine.now.in, mine.receive_free);
      }
    }
    for (rank_t r = 0; r < ranks; ++r) {
      detail::rank_clock& mine = clocks[index(r)];
      if (mine.now.to == nobody) continue;
      link_cost const wire = net(r, mine.now.to);
      double const size = chunk * mine.now.out.count;
      mine.send_free = mine.start + wire.alpha + size * wire.beta;
      mine.spent.sent += size;
      ++mine.spent.messages;
    }
  };

  for (int tick = 0; tick < rounds + (segments - 1) * period; ++tick)
    for (int k = std::max(0, (tick - rounds) / period); k < segments && tick - k * period >= 0; ++k)
      if (tick - k * period < rounds) play(k, tick - k * period);

  estimate most{};
  for (detail::rank_clock const& c : clocks) {
    most.seconds = std::max({most.seconds, c.send_free, c.receive_free});
    most.messages = std::max(most.messages, c.spent.messages);
    most.sent = std::max(most.sent, c.spent.sent);
    most.folded = std::max(most.folded, c.spent.folded);
  }
  return most;
}

}  // namespace rondo::inline v0
