#pragma once

#include <rondo/detail/text.hpp>
#include <rondo/group.hpp>
#include <rondo/transports/tcp/handshake.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <deque>
#include <poll.h>
#include <string>
#include <sys/resource.h>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// The connections of one rank while they are being made: of each pair the higher rank dials and the lower one listens.
class tcp_mesh {
 public:
  using clock = group::clock;

  tcp_mesh(group const& ranks, tcp_options const& options) : ranks_(ranks), options_(options) {}

  /// Opens the listeners; returns what the peers need to know.
  tcp_wiring listen() {
    if (options_.streams < 1 || options_.stripe < 1)
      throw invalid_argument("tcp_options needs at least one stream and one byte in a stripe");
    require_descriptors();
    tcp_wiring mine{options_.streams, options_.stripe, tcp_wiring::this_machine(), tcp_wiring::make_secret(), {}};
    std::string refused;
    for (auto const& a : addresses()) {
      auto socket = tcp_socket::open(a.address.family());
      socket.tune(options_, a.address);
      if (!socket.bind(a.address, 0) || !socket.listen()) {
        refused += text_of({refused.empty() ? "" : ", ", a.address.to_string(), " (", std::strerror(errno), ")"});
        continue;
      }
      mine.endpoints.push_back({a.address, a.prefix, socket.local_port()});
      listeners_.push_back(std::move(socket));
    }
    if (listeners_.empty())
      throw connect_error(text_of({"cannot listen on ", refused, "; choose an address of this machine"}),
                          ranks_.rank());
    return mine;
  }

  /// Connects this rank with all others; returns why not, or an empty text. Throws if the group has a verdict.
  std::string connect(std::vector<tcp_wiring> const& wirings, clock::time_point deadline) {
    auto const& mine = wirings[index(ranks_.rank())];
    lanes_.resize(wirings.size());
    for (rank_t q = 0; q < ranks_.size(); ++q) {
      if (q == ranks_.rank()) continue;
      auto const& theirs = wirings[index(q)];
      lanes_[index(q)].resize(static_cast<std::size_t>(options_.streams));
      for (int s = 0; s < options_.streams; ++s, ++missing_)
        if (q < ranks_.rank())
          calls_.emplace_back(q, tcp_greeting{theirs.secret, ranks_.rank(), s}, mine.secret, mine.route_to(theirs),
                              options_);
    }
    for (auto& c : calls_) c.advance(false, clock::now());
    while (missing_ > 0) {
      if (ranks_.failed()) ranks_.verdict().raise();
      auto const now = clock::now();
      if (now >= deadline) return complaint();
      if (auto const problem = step(wirings, now); !problem.empty()) return problem;
    }
    listeners_.clear();
    visitors_.clear();
    return {};
  }

  /// The connections with `peer`, one for each stream; none with oneself.
  std::vector<tcp_socket> take(rank_t peer) noexcept { return std::move(lanes_[index(peer)]); }

 private:
  static constexpr int tick = 20;                    // milliseconds between two looks at the clocks
  static constexpr std::size_t most_strangers = 64;  // connections in mid-handshake, beyond those that are expected

  static std::size_t index(rank_t q) noexcept { return static_cast<std::size_t>(q); }

  std::vector<interface_address> addresses() const {
    if (options_.bind.empty())
      return usable_addresses(interface_addresses(), options_.interfaces.empty()
                                                         ? interface_filter::from_environment()
                                                         : interface_filter(options_.interfaces));
    auto const address = ip_address::parse(options_.bind);
    if (!address)
      throw invalid_argument(text_of({"\"", options_.bind, "\" is no numeric IPv4 or IPv6 address to bind to"}));
    return {{"", *address, 0}};
  }

  void require_descriptors() const {
    auto const needed = static_cast<::rlim_t>(ranks_.size() - 1) * static_cast<::rlim_t>(options_.streams);
    ::rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && needed >= limit.rlim_cur)
      throw connect_error(text_of({"TCP needs ", needed, " file descriptors for each rank, but the limit is ",
                                   limit.rlim_cur, "; raise it (ulimit -n) or use fewer streams"}));
  }

  std::string step(std::vector<tcp_wiring> const& wirings, clock::time_point now) {
    std::vector<pollfd> asked;
    for (auto const& l : listeners_) asked.push_back({l.descriptor(), POLLIN, 0});
    for (auto const& c : calls_) asked.push_back(c.ask());
    for (auto const& v : visitors_) asked.push_back(v.ask());
    ::poll(asked.data(), asked.size(), tick);

    auto const* answer = asked.data() + listeners_.size();
    for (auto& c : calls_) {
      c.advance((answer++)->revents != 0, now);
      if (c.done()) keep(c.peer(), c.stream(), c.socket());
      if (c.out_of_descriptors()) return too_many_files();
    }
    std::erase_if(calls_, [](auto const& c) { return c.done(); });
    std::erase_if(visitors_, [&](auto& v) { return (answer++)->revents != 0 && !serve(v, wirings); });
    for (auto const& l : listeners_) {
      while (auto socket = l.accept()) visitors_.emplace_back(std::move(socket));
      if (errno == EMFILE || errno == ENFILE) return too_many_files();
    }
    while (visitors_.size() > missing_ + most_strangers) visitors_.pop_front();
    return {};
  }

  /// Goes on with the handshake of a visitor; false if it is over, one way or the other.
  bool serve(tcp_visitor& v, std::vector<tcp_wiring> const& wirings) {
    bool const known = v.greeted();
    if (!v.listen()) return false;
    if (!v.greeted()) return true;
    auto const g = v.greeting();
    bool const expected = g.rank > ranks_.rank() && g.rank < ranks_.size() && g.stream >= 0 &&
                          g.stream < options_.streams && same_secret(g.secret, wirings[index(ranks_.rank())].secret) &&
                          !lanes_[index(g.rank)][index(g.stream)];
    if (!expected) return false;
    if (!known) return v.answer(wirings[index(g.rank)].secret);
    if (!v.confirmed()) return true;
    keep(g.rank, g.stream, v.socket());
    return false;
  }

  void keep(rank_t peer, int stream, tcp_socket& socket) noexcept {
    lanes_[index(peer)][index(stream)] = std::move(socket);
    --missing_;
  }

  std::string too_many_files() const {
    return text_of(
        {"rank ", ranks_.rank(), " is out of file descriptors; raise the limit (ulimit -n) or use fewer streams"});
  }

  /// A dialer knows what went wrong and with which address; a listener only that nobody came.
  std::string complaint() const {
    if (!calls_.empty())
      return text_of({"rank ", ranks_.rank(), " cannot reach rank ", calls_.front().peer(), " by TCP: tried ",
                      calls_.front().tried(), "; open the firewall, or choose the interface with RONDO_SOCKET_IFNAME"});
    rank_t absent = ranks_.rank() + 1;
    while (
        std::all_of(lanes_[index(absent)].begin(), lanes_[index(absent)].end(), [](auto const& s) { return bool(s); }))
      ++absent;
    return text_of({"rank ", ranks_.rank(), " was not reached by rank ", absent, "; open the firewall between them"});
  }

  group const& ranks_;
  tcp_options const& options_;
  std::vector<tcp_socket> listeners_;
  std::vector<tcp_call> calls_;
  std::deque<tcp_visitor> visitors_;
  std::vector<std::vector<tcp_socket>> lanes_;
  std::size_t missing_ = 0;
};

}  // namespace rondo::inline v0::detail
