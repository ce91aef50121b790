#pragma once

#include <rondo/detail/text.hpp>
#include <rondo/group.hpp>
#include <rondo/transports/tcp/socket.hpp>
#include <rondo/transports/tcp/wiring.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <poll.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

// The handshake of a connection. The dialer sends the secret of the listener, its own rank and the number of the
// stream; the listener answers with the secret of the dialer; the dialer confirms, and only then both use the
// connection: one that the dialer gave up too early is never taken for good.

/// What a dialer says first.
struct tcp_greeting {
  using bytes_type = std::array<std::byte, 24>;

  tcp_wiring::secret_type secret{};
  rank_t rank = nobody;
  int stream = 0;

  bytes_type encode() const noexcept {
    bytes_type bytes;
    std::copy(secret.begin(), secret.end(), bytes.begin());
    for (std::size_t i = 0; i < 4; ++i) {
      bytes[16 + i] = static_cast<std::byte>(static_cast<std::uint32_t>(rank) >> 8 * i);
      bytes[20 + i] = static_cast<std::byte>(static_cast<std::uint32_t>(stream) >> 8 * i);
    }
    return bytes;
  }

  static tcp_greeting decode(std::span<std::byte const, 24> bytes) noexcept {
    tcp_greeting g;
    std::copy_n(bytes.begin(), g.secret.size(), g.secret.begin());
    std::uint32_t rank = 0, stream = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      rank |= std::to_integer<std::uint32_t>(bytes[16 + i]) << 8 * i;
      stream |= std::to_integer<std::uint32_t>(bytes[20 + i]) << 8 * i;
    }
    g.rank = static_cast<rank_t>(rank);
    g.stream = static_cast<int>(stream);
    return g;
  }
};

/// Compares in a time that does not tell where the secrets differ.
inline bool same_secret(tcp_wiring::secret_type const& a, tcp_wiring::secret_type const& b) noexcept {
  std::byte difference{0};
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == std::byte{0};
}

/// One connection that this rank dials: tries the addresses of the peer in turn, again and again.
class tcp_call {
 public:
  using clock = group::clock;

  /// `options` must outlive the call.
  tcp_call(rank_t peer, tcp_greeting const& greeting, tcp_wiring::secret_type const& answer,
           std::vector<tcp_endpoint> route, tcp_options const& options)
      : peer_(peer), greeting_(greeting), expected_(answer), route_(std::move(route)), errors_(route_.size()),
        options_(&options) {}

  rank_t peer() const noexcept { return peer_; }
  int stream() const noexcept { return greeting_.stream; }
  bool done() const noexcept { return state_ == state::done; }
  tcp_socket& socket() noexcept { return socket_; }

  pollfd ask() const noexcept {
    bool const idle = state_ == state::resting || done();
    return {idle ? -1 : socket_.descriptor(), static_cast<short>(state_ == state::connecting ? POLLOUT : POLLIN), 0};
  }

  /// Goes on as far as it can; `ready` says that the system has news of the socket.
  void advance(bool ready, clock::time_point now) {
    if (ready && state_ == state::connecting) {
      greet();
    } else if (ready && state_ == state::greeted) {
      hear();
    } else if (now >= until_ && (state_ == state::connecting || state_ == state::greeted)) {
      failed(ETIMEDOUT);
    }
    while (state_ == state::resting && now >= until_) dial(now);
  }

  /// The addresses that were tried, and what became of them.
  std::string tried() const {
    std::string text;
    for (std::size_t i = 0; i < route_.size(); ++i)
      text += text_of({i == 0 ? "" : ", ", route_[i].to_string(), " (",
                       errors_[i] == 0        ? "not tried"
                       : errors_[i] == EPROTO ? "something else answers"
                                              : std::strerror(errors_[i]),
                       ")"});
    return text;
  }

  bool out_of_descriptors() const noexcept {
    return std::any_of(errors_.begin(), errors_.end(), [](int e) { return e == EMFILE || e == ENFILE; });
  }

 private:
  enum class state { resting, connecting, greeted, done };

  void dial(clock::time_point now) {
    auto const& target = route_[next_];
    auto const source = ip_address::parse(options_->bind);
    heard_ = 0;
    until_ = now + patience_;
    state_ = state::connecting;
    socket_ = tcp_socket::open(target.address.family());
    if (!socket_) return failed(errno);
    socket_.tune(*options_, target.address);
    if (source && !socket_.bind(*source, 0)) return failed(errno);
    if (!socket_.connect(target.address, target.port) && errno != EINPROGRESS && errno != EINTR) failed(errno);
  }

  void greet() {
    if (int const error = socket_.take_error(); error != 0) return failed(error);
    auto const bytes = greeting_.encode();
    if (socket_.send(bytes) != static_cast<::ssize_t>(bytes.size())) return failed(ECONNRESET);
    state_ = state::greeted;
  }

  void hear() {
    auto const n = socket_.receive(std::span(answer_).subspan(heard_));
    if (n < 0 && not_now(errno)) return;
    if (n <= 0) return failed(n == 0 ? ECONNRESET : errno);
    heard_ += static_cast<std::size_t>(n);
    if (heard_ < answer_.size()) return;
    if (!same_secret(answer_, expected_)) return failed(EPROTO);
    std::byte const confirmation{1};
    if (socket_.send({&confirmation, 1}) != 1) return failed(ECONNRESET);
    state_ = state::done;
  }

  void failed(int error) {
    errors_[next_] = error;
    socket_ = tcp_socket();
    state_ = state::resting;
    until_ = {};
    if (++next_ < route_.size()) return;
    next_ = 0;
    until_ = clock::now() + patience_ / 16;
    patience_ = std::min(2 * patience_, std::chrono::milliseconds(16000));
  }

  rank_t peer_;
  tcp_greeting greeting_;
  tcp_wiring::secret_type expected_, answer_{};
  std::vector<tcp_endpoint> route_;
  std::vector<int> errors_;
  tcp_options const* options_;
  tcp_socket socket_;
  state state_ = state::resting;
  std::size_t next_ = 0, heard_ = 0;
  clock::time_point until_{};
  std::chrono::milliseconds patience_{1000};  // for one address; doubles from round to round
};

/// One connection that somebody made to this rank: a peer, as soon as it has proved it.
class tcp_visitor {
 public:
  explicit tcp_visitor(tcp_socket socket) noexcept : socket_(std::move(socket)) {}

  tcp_socket& socket() noexcept { return socket_; }
  pollfd ask() const noexcept { return {socket_.descriptor(), POLLIN, 0}; }
  bool greeted() const noexcept { return heard_ >= greeting_size; }
  bool confirmed() const noexcept { return heard_ == said_.size(); }
  tcp_greeting greeting() const noexcept { return tcp_greeting::decode(std::span(said_).first<greeting_size>()); }

  /// Reads on, but nothing beyond what this stage of the handshake allows; false if the visitor has gone.
  bool listen() noexcept {
    auto const n =
        socket_.receive(std::span(said_).subspan(heard_, (greeted() ? said_.size() : greeting_size) - heard_));
    if (n > 0) heard_ += static_cast<std::size_t>(n);
    return n > 0 || (n < 0 && not_now(errno));
  }

  bool answer(tcp_wiring::secret_type const& secret) const noexcept {
    return socket_.send(secret) == static_cast<::ssize_t>(secret.size());
  }

 private:
  static constexpr std::size_t greeting_size = std::tuple_size_v<tcp_greeting::bytes_type>;

  tcp_socket socket_;
  std::array<std::byte, greeting_size + 1> said_{};
  std::size_t heard_ = 0;
};

}  // namespace rondo::inline v0::detail
