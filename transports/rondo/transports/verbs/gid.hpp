#pragma once

#include <rondo/detail/environment_text.hpp>
#include <rondo/error.hpp>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <charconv>
#include <cstdint>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <system_error>
#include <vector>

namespace rondo::inline v0::detail {

/// An entry of the GID table of a port: an address by which peers reach it.
struct verbs_gid {
  enum class kind : unsigned char { infiniband, roce_v1, roce_v2 };

  std::array<std::uint8_t, 16> bytes{};
  int index = 0;  ///< means something on this host only; peers are told the bytes
  kind type = kind::roce_v2;

  bool empty() const noexcept {
    return std::all_of(bytes.begin(), bytes.end(), [](auto b) { return b == 0; });
  }
  bool ipv4() const noexcept {
    return std::all_of(bytes.begin(), bytes.begin() + 10, [](auto b) { return b == 0; }) && bytes[10] == 0xff &&
           bytes[11] == 0xff;
  }
  bool link_local() const noexcept { return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80; }

  std::string to_string() const {
    char text[INET6_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET6, bytes.data(), text, sizeof text);
    return text;
  }
};

/// The entries by which a port can be addressed, best first: what routers pass on before what stays on one link, and
/// RoCE v2, which is UDP, before v1, which many networks drop.
inline std::vector<verbs_gid> by_preference(std::vector<verbs_gid> table) {
  auto const cost = [](verbs_gid const& g) {
    bool const v1 = g.type == verbs_gid::kind::roce_v1;
    if (g.type == verbs_gid::kind::infiniband || (!v1 && g.ipv4())) return 0;
    if (!v1) return g.link_local() ? 2 : 1;
    return g.ipv4() ? 3 : g.link_local() ? 5 : 4;
  };
  std::erase_if(table, [](auto const& g) { return g.empty(); });
  std::stable_sort(table.begin(), table.end(), [&](auto const& a, auto const& b) { return cost(a) < cost(b); });
  return table;
}

/// The entry of the GID table that the environment asks for; -1 if it does not.
inline int gid_index_from_environment() {
  auto const [variable, text] = environment_text::first_of({"RONDO_IB_GID_INDEX", "NCCL_IB_GID_INDEX"});
  if (text.empty()) return -1;
  int index = -1;
  auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (code == std::errc{} && end == text.data() + text.size() && index >= -1) return index;
  throw invalid_argument(std::string(variable) + " is \"" + std::string(text) +
                         "\"; write the number of an entry, or -1");
}

}  // namespace rondo::inline v0::detail
