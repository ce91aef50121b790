#pragma once

#include <rondo/detail/announce.hpp>
#include <rondo/detail/by_rank.hpp>
#include <rondo/error.hpp>
#include <rondo/group.hpp>
#include <rondo/memory.hpp>
#include <rondo/pollable.hpp>
#include <rondo/registered_memory.hpp>
#include <rondo/transport.hpp>
#include <rondo/transports/multi/options.hpp>
#include <rondo/transports/multi/pairing.hpp>
#include <rondo/transports/shm.hpp>
#include <rondo/transports/tcp.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <poll.h>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace rondo::inline v0 {

/// Several transports at once: each pair of ranks uses the first of Xs that is proved to connect it. Models transport.
///
/// A transport with a static member reach(group&, deadline), which returns the ranks that this rank reaches, is asked;
/// any other one is tried with all ranks, and what it cannot connect in a quarter of the time that is left goes to the
/// next. Where all ranks of the group share memory, this is that transport. Transports over libraries go into the list
/// by the user: basic_multi<shm, verbs, tcp>.
template <pollable... Xs>
class basic_multi {
  static_assert(sizeof...(Xs) > 0 && sizeof...(Xs) < detail::pairing::none, "name the transports to choose from");

 public:
  static constexpr std::string_view name = "multi";
  using options_type = multi_options<Xs...>;

  /// Connects all ranks of the group with each other. Every rank must call with the same list of transports; all of
  /// them succeed or throw connect_error, which names a pair that nothing connects and why each transport does not.
  /// Blocks until `deadline` at the most.
  static basic_multi connect(std::shared_ptr<group> const& ranks, options_type const& options = {},
                             group::clock::time_point deadline = group::clock::now() + std::chrono::minutes(5)) {
    basic_multi x(ranks->rank(), ranks->size(), options);
    if (ranks->size() == 1) return x;
    std::vector<detail::pair_reach> says;
    reaches const reached{reach<Xs>(*ranks, deadline)...};
    auto const blobs = detail::announce(
        *ranks, "connect", [&] { return x.look(reached); }, deadline);
    for (rank_t q = 0; q < ranks->size(); ++q)
      says.push_back(detail::pair_reach::decode(detail::by_rank(blobs, q), list(), count, ranks->size(), q));
    detail::pairing pairs({names.begin(), names.end()}, {within_a_host<Xs>()...}, std::move(says));
    x.template connect_from<0>(ranks, pairs, deadline);
    pairs.require_all();
    x.settle(pairs);
    return x;
  }

  /// connect() with the options of this one.
  basic_multi reconnect(std::shared_ptr<group> const& ranks, group::clock::time_point deadline) const {
    return connect(ranks, options_, deadline);
  }

  rank_t rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(ways_.size()); }

  std::size_t write(rank_t peer, std::span<std::byte const> bytes, bool more) {
    return with(peer, [&](auto& x, rank_t q) { return x.write(q, bytes, more); });
  }
  std::span<std::byte const> readable(rank_t peer, std::size_t need) {
    return with(peer, [&](auto& x, rank_t q) { return x.readable(q, need); });
  }
  void consume(rank_t peer, std::size_t n) {
    with(peer, [&](auto& x, rank_t q) { x.consume(q, n); });
  }
  std::size_t read(rank_t peer, std::span<std::byte> bytes) {
    return with(peer, [&](auto& x, rank_t q) { return x.read(q, bytes); });
  }

  void wait(std::chrono::nanoseconds patience) {
    if (used_ == 0) return std::this_thread::sleep_for(patience);
    if (used_ == 1) return each([&](auto& x) { x.wait(patience); });
    polled_.clear();
    auto const limit = watch(polled_);
    detail::poll_until_ready(polled_, std::min(patience, limit));
    watched(polled_);
  }

  std::chrono::nanoseconds watch(std::vector<pollfd>& polled) {
    auto limit = detail::any_time;
    std::size_t i = 0;
    each([&](auto& x) {
      auto const before = polled.size();
      limit = std::min(limit, x.watch(polled));
      watches_[i++] = polled.size() - before;
    });
    return limit;
  }
  void watched(std::span<pollfd const> answers) {
    std::size_t i = 0;
    each([&](auto& x) {
      auto const n = watches_[i++];
      x.watched(answers.first(n));
      answers = answers.subspan(n);
    });
  }

  /// As much as any of the transports in use wants.
  std::size_t piece_bytes() const noexcept {
    std::size_t most = 0;
    each([&](auto const& x) { most = std::max(most, rondo::piece_bytes(x)); });
    return most;
  }

  /// Do all of the transports in use take memory of devices?
  bool takes_device_memory() const noexcept {
    bool all = true;
    each([&](auto const& x) { all = all && rondo::takes_device_memory(x); });
    return all;
  }

  /// Memory that all ranks share, where they do: as `addressable` says.
  std::span<std::byte> board(rank_t owner) const {
    std::span<std::byte> found;
    each_common([&](auto const& x) { found = x.board(owner); });
    return found;
  }
  mailbox& mail(rank_t owner, rank_t writer) const {
    static mailbox none;  // who has no board has no use for it
    mailbox* found = &none;
    each_common([&](auto const& x) { found = &x.mail(owner, writer); });
    return *found;
  }
  void notify(rank_t peer) {
    each_common([&](auto& x) { x.notify(peer); });
  }
  std::shared_ptr<registered_memory> registered() const {
    std::shared_ptr<registered_memory> found;
    each_common([&](auto const& x) { found = x.registered(); });
    return found;
  }

  /// The lowest rank that this one is proved to share memory with, perhaps itself; nobody if that was not tried.
  rank_t host_leader() const noexcept { return host_leader_; }

  /// What connects this rank with a peer, and why nothing better does.
  std::string explain(rank_t peer) const { return detail::by_rank(reasons_, peer); }

 private:
  static constexpr std::size_t count = sizeof...(Xs);
  static constexpr std::array<std::string_view, count> names{Xs::name...};

  /// How to reach a peer: the number of the transport, and the peer's rank there.
  struct way {
    std::uint8_t via = 0;
    rank_t rank = nobody;
  };

  basic_multi(rank_t rank, int size, options_type const& options)
      : rank_(rank), options_(options), ways_(static_cast<std::size_t>(size)), reasons_(ways_.size(), "itself") {}

  static std::string list() {
    std::string text;
    for (auto const n : names) text += (text.empty() ? "" : ", ") + std::string(n);
    return text;
  }

  /// For each transport, which ranks it reaches.
  using reaches = std::array<std::vector<bool>, count>;

  /// Does it connect ranks of one host only?
  template <class X>
  static constexpr bool within_a_host() noexcept {
    if constexpr (requires { requires X::within_a_host; }) return true;
    return addressable<X>;
  }

  template <class X>
  static std::vector<bool> reach(group& ranks, group::clock::time_point deadline) {
    if constexpr (requires { X::reach(ranks, deadline); })
      return X::reach(ranks, deadline);
    else
      return std::vector<bool>(static_cast<std::size_t>(ranks.size()), true);
  }

  /// What this rank reaches and may use, as text for the others.
  std::string look(reaches const& reached) const {
    using detail::pair_reach;
    auto const listed = detail::text_or_environment(options_.transports, "RONDO_TRANSPORTS");
    pair_reach mine{detail::text_or_environment(options_.host, "RONDO_HOSTID"), {}};
    for (std::size_t i = 0; i < count; ++i) {
      bool const wanted = detail::lists_transport(listed, names[i], names);
      auto& row = mine.rows.emplace_back();
      for (rank_t q = 0; q < size(); ++q) {
        bool const permitted = wanted && (q == rank_ || !options_.permits || options_.permits(names[i], q));
        row += !permitted                       ? pair_reach::forbidden
               : detail::by_rank(reached[i], q) ? pair_reach::reached
                                                : pair_reach::unreached;
      }
    }
    return mine.encode(list());
  }

  /// Connects transport Number, and those behind it, among the ranks that need it.
  template <std::size_t Number>
  void connect_from(std::shared_ptr<group> const& ranks, detail::pairing& pairs, group::clock::time_point deadline) {
    using X = std::tuple_element_t<Number, std::tuple<Xs...>>;
    if (auto const sets = pairs.sets(Number); !sets.empty()) {
      auto const mine = std::find_if(sets.begin(), sets.end(), [this](auto const& set) {
        return std::find(set.begin(), set.end(), rank_) != set.end();
      });
      auto const part = ranks->split(mine == sets.end() ? -1 : mine->front(), rank_, deadline);
      auto const now = group::clock::now();
      auto const patience = Number + 1 < count ? (deadline - now) / 4 : (deadline - now) / 8 * 7;
      std::string problem;
      if (part) try {
          std::get<Number>(parts_).emplace(connect_part<X>(part, std::get<Number>(options_.each), now + patience));
        } catch (error const& e) { problem = complaint(e, *mine); }
      auto outcomes = ranks->exchange(problem, deadline);
      pairs.settle(Number, sets, std::move(outcomes));
      for (rank_t q = 0; part && q < part->size(); ++q)
        if (rank_t const peer = detail::by_rank(*mine, q); pairs.via(rank_, peer) == Number)
          detail::by_rank(ways_, peer) = {static_cast<std::uint8_t>(Number), q};
      if (std::none_of(ways_.begin(), ways_.end(), [](way const& w) { return w.via == Number && w.rank != nobody; }))
        std::get<Number>(parts_).reset();
      else
        members_[Number] = *mine;
    }
    if constexpr (Number + 1 < count) connect_from<Number + 1>(ranks, pairs, deadline);
  }

  template <class X, class Options>
  static X connect_part(std::shared_ptr<group> const& part, Options const& options, group::clock::time_point deadline) {
    if constexpr (std::is_same_v<Options, std::monostate>)
      return X::connect(part, deadline);
    else
      return X::connect(part, options, deadline);
  }

  /// The words of a transport that connected a part of the ranks, which are numbered anew there.
  std::string complaint(error const& e, std::vector<rank_t> const& part) const {
    std::string text(e.sentence());
    if (part.size() == ways_.size()) return text;
    text += " (counting only ranks ";
    for (std::size_t i = 0; i < part.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(part[i]);
    return text + ")";
  }

  /// Fills in what the result of the choice is used for later.
  void settle(detail::pairing const& pairs) {
    host_leader_ = pairs.host_leader(rank_);
    for (rank_t q = 0; q < size(); ++q) {
      if (q == rank_) continue;
      auto const via = pairs.via(rank_, q);
      auto& reason = detail::by_rank(reasons_, q) = names[via];
      if (via > 0) reason += " (" + pairs.objections(via, rank_, q) + ")";
    }
    each([this](auto const&) { ++used_; });
  }

  /// Calls f with every transport in use.
  template <class F>
  void each(F&& f) {
    each_of(*this, f, std::make_index_sequence<count>{});
  }
  template <class F>
  void each(F&& f) const {
    each_of(*this, f, std::make_index_sequence<count>{});
  }
  template <class Self, class F, std::size_t... Number>
  static void each_of(Self& self, F& f, std::index_sequence<Number...>) {
    (self.template guard<Number>([&] {
      if (auto& x = std::get<Number>(self.parts_)) f(*x);
    }),
     ...);
  }

  /// Calls f with the transport whose memory all ranks share, if there is one. It numbers them as this one does.
  template <class Self, class F>
  static void common_part(Self& self, F&& f) {
    self.each([&](auto& x) {
      if constexpr (addressable<std::remove_cvref_t<decltype(x)>>)
        if (x.size() == self.size()) f(x);
    });
  }
  template <class F>
  void each_common(F&& f) {
    common_part(*this, f);
  }
  template <class F>
  void each_common(F&& f) const {
    common_part(*this, f);
  }

  /// f(transport, rank there) for what connects this rank with a peer.
  template <std::size_t Number = 0, class F>
  decltype(auto) with(rank_t peer, F&& f) {
    way const& w = detail::by_rank(ways_, peer);
    if constexpr (Number + 1 < count)
      if (w.via != Number) return with<Number + 1>(peer, f);
    return guard<Number>([&]() -> decltype(auto) { return f(*std::get<Number>(parts_), w.rank); });
  }

  /// Calls f, which uses transport Number. An error names the rank as this transport numbers it.
  template <std::size_t Number, class F>
  decltype(auto) guard(F&& f) const {
    try {
      return f();
    } catch (peer_lost const& e) {
      rank_t const lost = detail::by_rank(members_[Number], e.rank());
      if (lost == e.rank()) throw;
      throw peer_lost("rank " + std::to_string(lost) + " was lost, which is number " + std::to_string(e.rank()) +
                          " among those connected by " + std::string(names[Number]) + ": " + std::string(e.sentence()),
                      lost);
    }
  }

  rank_t rank_;
  options_type options_;
  std::tuple<std::optional<Xs>...> parts_;
  std::array<std::vector<rank_t>, count> members_{};  // of each transport in use: ranks by their number there
  std::vector<way> ways_;
  std::vector<std::string> reasons_;
  rank_t host_leader_ = nobody;
  int used_ = 0;
  std::vector<pollfd> polled_;
  std::array<std::size_t, count> watches_{};  // entries that each transport in use has asked to poll
};

/// Shared memory within a host, TCP between hosts.
using multi = basic_multi<shm, tcp>;

static_assert(addressable<multi> && pollable<multi>);

}  // namespace rondo::inline v0
