#pragma once

#include <rondo/detail/environment_text.hpp>
#include <rondo/detail/name_list.hpp>
#include <rondo/error.hpp>
#include <rondo/transports/tcp/ip_address.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <iterator>
#include <memory>
#include <net/if.h>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::inline v0 {

/// One address of a network interface of this machine.
struct interface_address {
  std::string interface;
  ip_address address;
  int prefix = 0;  ///< how many leading bits all addresses of its subnet share

  friend bool operator==(interface_address const&, interface_address const&) = default;
};

/// Chooses network interfaces by name, in the grammar of NCCL_SOCKET_IFNAME.
///
///     eth,ib       the names that start with eth or ib
///     =eth0,eth1   exactly these
///     ^docker,lo   all but the names that start so; ^= excludes exact names
///
/// The empty text is the default: neither loopback nor what tools for containers and virtual machines set up.
class interface_filter {
 public:
  interface_filter() = default;
  explicit interface_filter(std::string_view text) : text_(text), list_(text) {
    if (list_.names.empty() && !is_default())
      throw invalid_argument("the interface filter \"" + text_ +
                             "\" names nothing; write eth,ib or =eth0 or ^docker,lo");
  }

  /// The text in RONDO_SOCKET_IFNAME, else that in NCCL_SOCKET_IFNAME, else the default.
  static interface_filter from_environment() {
    return interface_filter(detail::environment_text::first_of({"RONDO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"}).text);
  }

  bool is_default() const noexcept { return text_.empty(); }
  std::string const& text() const noexcept { return text_; }

  bool accepts(std::string_view interface) const noexcept {
    return is_default() ? interface != "lo" && !is_virtual(interface) : list_.accepts(interface);
  }

 private:
  static bool is_virtual(std::string_view interface) noexcept {
    static constexpr std::string_view prefixes[] = {"docker", "podman", "cni",  "cali",  "cilium", "flannel", "br-",
                                                    "veth",   "virbr",  "vnet", "vmnet", "vbox",   "lxcbr",   "lxdbr"};
    return std::any_of(std::begin(prefixes), std::end(prefixes), [&](auto p) { return interface.starts_with(p); });
  }

  std::string text_;
  detail::name_list list_;
};

/// The addresses of all interfaces of this machine that are up. IPv6 link-local ones are left out: they mean nothing
/// without the zone of the machine that dials.
inline std::vector<interface_address> interface_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0)
    throw connect_error("cannot list the network interfaces (" + std::string(std::strerror(errno)) +
                        "); bind an address");
  std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> const owner(list, freeifaddrs);
  std::vector<interface_address> all;
  constexpr unsigned up = IFF_UP | IFF_RUNNING;
  for (auto const* i = list; i != nullptr; i = i->ifa_next) {
    auto const address = ip_address::from(i->ifa_addr);
    if (!address || address->link_local() || (i->ifa_flags & up) != up) continue;
    auto const mask = ip_address::from(i->ifa_netmask);
    all.push_back({i->ifa_name, *address, mask ? mask->leading_ones() : 0});
  }
  return all;
}

/// Those of `all` that a rank offers to its peers. By default loopback is among them, for peers on the same machine,
/// and virtual interfaces only where there are no others. Throws connect_error if nothing is left.
inline std::vector<interface_address> usable_addresses(std::vector<interface_address> const& all,
                                                       interface_filter const& filter) {
  std::vector<interface_address> usable;
  auto const add = [&](auto wanted) { std::copy_if(all.begin(), all.end(), std::back_inserter(usable), wanted); };
  if (filter.is_default()) {
    add([&](auto const& a) { return filter.accepts(a.interface) && !a.address.loopback(); });
    if (usable.empty()) add([](auto const& a) { return !a.address.loopback(); });
    add([](auto const& a) { return a.address.loopback(); });
  } else {
    add([&](auto const& a) { return filter.accepts(a.interface); });
  }
  if (!usable.empty()) return usable;
  if (all.empty()) throw connect_error("no network interface is up; TCP needs at least loopback (ip link set lo up)");
  std::string names;
  for (auto const& a : all) names += (names.empty() ? "" : ", ") + a.interface + " (" + a.address.to_string() + ")";
  throw connect_error("the interface filter \"" + filter.text() + "\" matches no interface that is up: " + names);
}

}  // namespace rondo::inline v0
