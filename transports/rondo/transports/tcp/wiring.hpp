#pragma once

#include <rondo/detail/insertion_sort.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>
#include <rondo/transports/interfaces.hpp>
#include <rondo/transports/tcp/options.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/random.h>
#include <sys/stat.h>
#include <system_error>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// An address at which a rank listens.
struct tcp_endpoint {
  ip_address address;
  int prefix;
  std::uint16_t port;

  std::string to_string() const {
    auto const text = address.to_string();
    return address.family() == AF_INET6 ? text_of({"[", text, "]:", port}) : text_of({text, ":", port});
  }
};

/// What a rank tells the others before they connect, as text:
///
///     streams stripe machine secret
///     address prefix port              one line for each endpoint
struct tcp_wiring {
  using secret_type = std::array<std::byte, 16>;

  int streams = 0;
  std::size_t stripe = 0;
  std::string machine;  ///< equal on two ranks that, by all appearances, share a network stack; or empty
  secret_type secret{};
  std::vector<tcp_endpoint> endpoints;

  static secret_type make_secret() {
    secret_type secret;
    for (std::size_t got = 0; got < secret.size();) {
      auto const n = ::getrandom(secret.data() + got, secret.size() - got, 0);
      if (n > 0)
        got += static_cast<std::size_t>(n);
      else if (errno != EINTR)
        throw connect_error(text_of({"the system gives no random numbers (", std::strerror(errno), ")"}));
    }
    return secret;
  }

  /// The boot and the network name space. Only a hint for the order of dialling: what answers must know the secret.
  static std::string this_machine() {
    struct stat name_space {};
    char boot[64] = {};
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> const file(std::fopen("/proc/sys/kernel/random/boot_id", "re"),
                                                               std::fclose);
    if (!file || std::fscanf(file.get(), "%63s", boot) != 1 || ::stat("/proc/self/ns/net", &name_space) != 0)
      return "-";
    return text_of({boot, "/", name_space.st_ino});
  }

  std::string encode() const {
    std::string text = text_of({streams, " ", stripe, " ", machine, " "});
    for (auto const b : secret)
      for (int const shift : {4, 0}) text += "0123456789abcdef"[std::to_integer<unsigned>(b >> shift) & 15U];
    for (auto const& e : endpoints) text += text_of({"\n", e.address.to_string(), " ", e.prefix, " ", e.port});
    return text;
  }

  /// Throws connect_error, which names the rank, for a text that encode() does not write.
  static tcp_wiring decode(std::string_view text, rank_t from) {
    auto const word = [&](char end) {
      auto const w = text.substr(0, text.find(end));
      text.remove_prefix(std::min(w.size() + 1, text.size()));
      return w;
    };
    bool good = true;
    auto const number = [&](std::string_view w, auto least, int base = 10) {
      auto n = least;
      auto const [end, code] = std::from_chars(w.data(), w.data() + w.size(), n, base);
      good &= code == std::errc{} && end == w.data() + w.size() && n >= least;
      return n;
    };
    tcp_wiring w;
    w.streams = number(word(' '), 1);
    w.stripe = number(word(' '), std::size_t{1});
    w.machine = word(' ');
    auto const secret = word('\n');
    for (std::size_t i = 0; i < w.secret.size(); ++i)
      w.secret[i] = std::byte{number(secret.substr(std::min(2 * i, secret.size()), 2), std::uint8_t{0}, 16)};
    while (good && !text.empty()) {
      auto const address = ip_address::parse(std::string(word(' ')));
      int const prefix = number(word(' '), 0);
      auto const port = number(word('\n'), std::uint16_t{1});
      good &= address.has_value();
      if (good) w.endpoints.push_back({*address, prefix, port});
    }
    if (good && secret.size() == 2 * w.secret.size() && !w.endpoints.empty()) return w;
    throw connect_error(
        text_of({"rank ", from, " sent TCP addresses that cannot be read; run the same version everywhere"}), from);
  }

  /// Where to dial `peer`, best first: loopback on the same machine, then shared subnets, then what a router may reach,
  /// and the loopback of what seems to be another machine last.
  std::vector<tcp_endpoint> route_to(tcp_wiring const& peer) const {
    bool const neighbour = machine == peer.machine && machine != "-";
    auto const cost = [&](tcp_endpoint const& e) {
      if (e.address.loopback()) return neighbour ? 0 : 3;
      auto const near = [&](tcp_endpoint const& mine) {
        return mine.prefix > 0 && mine.address.shares(mine.prefix, e.address);
      };
      return std::any_of(endpoints.begin(), endpoints.end(), near) ? 1 : 2;
    };
    auto route = peer.endpoints;
    insertion_sort(route, [&](auto const& a, auto const& b) { return cost(a) < cost(b); });
    return route;
  }
};

}  // namespace rondo::inline v0::detail
