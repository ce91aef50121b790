#include "findings.hpp"
#include "text.hpp"
#include <rondo/error.hpp>
#include <rondo/transports/verbs/gid.hpp>
#include <rondo/transports/verbs/hca_filter.hpp>
#include <rondo/transports/verbs/options.hpp>

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

namespace rondo::bench {
namespace {

namespace fs = std::filesystem;
using detail::verbs_gid;

std::string const devices_folder = "/sys/class/infiniband/";

/// A port of a device, as the kernel describes it in files.
struct rdma_port {
  std::string device;
  int number;

  std::string name() const { return fmt::format("{} port {}", device, number); }
  std::string attribute(std::string const& file) const {
    return first_line(fmt::format("{}{}/ports/{}/{}", devices_folder, device, number, file));
  }
  bool active() const { return attribute("state").find("ACTIVE") != std::string::npos; }
  bool ethernet() const { return attribute("link_layer") == "Ethernet"; }
  std::string interface_of(verbs_gid const& g) const { return attribute(fmt::format("gid_attrs/ndevs/{}", g.index)); }

  /// The entries of the GID table that are in use, by number.
  std::vector<verbs_gid> gids() const {
    std::vector<verbs_gid> table;
    for (auto const& index : names_in(fmt::format("{}{}/ports/{}/gids", devices_folder, device, number))) {
      verbs_gid g;
      g.index = std::atoi(index.c_str());
      (void)::inet_pton(AF_INET6, attribute("gids/" + index).c_str(), g.bytes.data());
      if (g.empty()) continue;
      auto const type = attribute("gid_attrs/types/" + index);
      g.type = type.find("v2") != std::string::npos ? verbs_gid::kind::roce_v2
               : ethernet()                         ? verbs_gid::kind::roce_v1
                                                    : verbs_gid::kind::infiniband;
      table.push_back(g);
    }
    std::sort(table.begin(), table.end(), [](auto const& a, auto const& b) { return a.index < b.index; });
    return table;
  }
};

char const* to_string(verbs_gid::kind type) {
  switch (type) {
    case verbs_gid::kind::roce_v1: return "RoCE v1";
    case verbs_gid::kind::roce_v2: return "RoCE v2";
    default: return "InfiniBand";
  }
}

/// What is wrong with the file by which libibverbs opens a device.
void look_at_access(findings& found, std::string const& device) {
  for (auto const& file : names_in("/sys/class/infiniband_verbs")) {
    if (first_line("/sys/class/infiniband_verbs/" + file + "/ibdev") != device) continue;
    auto const path = "/dev/infiniband/" + file;
    if (::access(path.c_str(), R_OK | W_OK) != 0)
      found.problem(device, fmt::format("{} cannot be opened: {}", path, std::strerror(errno)),
                    "in a container: docker run --device /dev/infiniband --ulimit memlock=-1; else check its owner");
    return;
  }
  found.problem(device, "programs cannot use it: the kernel module ib_uverbs is not loaded", "modprobe ib_uverbs");
}

/// Which entry of the port's GID table would be taken, and what that is worth.
void look_at_gids(findings& found, rdma_port const& port) {
  auto const table = port.gids();
  auto const best = detail::by_preference(table);
  auto const asked = detail::gid_index_from_environment();
  auto const taken =
      std::find_if(best.begin(), best.end(), [&](auto const& g) { return asked < 0 || g.index == asked; });
  for (auto const& g : table) {
    auto const interface = port.interface_of(g);
    bool const chosen = taken != best.end() && g.index == taken->index;
    found.ok(port.name(), fmt::format("GID {}: {} ({}{}{}){}", g.index, g.to_string(), to_string(g.type),
                                      interface.empty() ? "" : " on ", interface, chosen ? ", taken" : ""));
  }
  if (best.empty())
    found.problem(port.name(), "it has no GID, so no peer can address it", "give its network interface an address");
  else if (taken == best.end())
    found.problem(port.name(), fmt::format("the environment asks for GID {}, which it does not have", asked),
                  "set RONDO_IB_GID_INDEX to one of the above, or unset it");
  else if (port.ethernet() && taken->link_local())
    found.note(port.name(), "only peers on the same wire can reach a link-local GID",
               fmt::format("give {} an IPv4 address, if peers are behind a router", port.interface_of(*taken)));
  if (taken == best.end() || !port.ethernet()) return;
  auto const interface = port.interface_of(*taken);
  // A packet of 4096 bytes and the headers of RoCE v2 over IPv6.
  if (auto const mtu = std::atoi(first_line("/sys/class/net/" + interface + "/mtu").c_str()); mtu > 0 && mtu < 4200)
    found.note(port.name(), fmt::format("an MTU of {} on {} cuts messages into small packets", mtu, interface),
               fmt::format("ip link set {} mtu 9000, on all hosts and switches between them", interface));
}

void look_at_port(findings& found, rdma_port const& port, hca_filter const& filter) {
  auto const text =
      fmt::format("{}, {}, {}", port.attribute("state"), port.attribute("rate"), port.attribute("link_layer"));
  if (!filter.accepts(port.device, port.number))
    return found.ok(port.name(),
                    fmt::format("{}, not used: left out by '{}' from the environment", text, filter.text()));
  if (!port.active())
    return found.problem(port.name(), text,
                         port.ethernet() ? "bring its network interface up (ip link set … up); check the cable"
                                         : "check the cable; a subnet manager (opensm) must run in the fabric");
  found.ok(port.name(), text);
  look_at_gids(found, port);
}

/// Whether memory can be locked without a limit: by the capability to do so.
bool may_lock_anything() {
  std::ifstream status("/proc/self/status");
  constexpr int ipc_lock = 14;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("CapEff:")) return (std::strtoull(line.c_str() + 7, nullptr, 16) >> ipc_lock & 1) != 0;
  return false;
}

void look_at_locked_memory(findings& found) {
  verbs_options const defaults;
  auto const a_peer = 2 * static_cast<std::size_t>(defaults.slots * defaults.rails) * defaults.slot_bytes;
  rlimit limit{};
  ::getrlimit(RLIMIT_MEMLOCK, &limit);
  constexpr std::size_t many = 64;
  auto const need = fmt::format("{} of memory are locked for each peer", format_bytes(a_peer));
  if (limit.rlim_cur == RLIM_INFINITY || may_lock_anything())
    return found.ok("locked memory", fmt::format("{}; there is no limit", need));
  auto const peers = static_cast<std::size_t>(limit.rlim_cur) / a_peer;
  auto const text = fmt::format("{}, and {} may be: enough for {} peers", need,
                                format_bytes(static_cast<std::size_t>(limit.rlim_cur)), peers);
  if (peers < many)
    found.problem("locked memory", text,
                  "ulimit -l unlimited; memlock in /etc/security/limits.conf; docker run --ulimit memlock=-1");
  else
    found.ok("locked memory", text);
}

void look_at_device(findings& found, std::string const& device, hca_filter const& filter) {
  auto const kind = first_line(devices_folder + device + "/node_type");
  if (kind.find("RNIC") != std::string::npos)
    return found.note(device, "it speaks iWARP, which rondo does not: it can only be used as a network interface");
  if (!fs::exists(devices_folder + device + "/device"))
    found.note(device, fmt::format("it is emulated by the kernel ({}): good for tests, not for speed",
                                   first_line(devices_folder + device + "/parent")));
  look_at_access(found, device);
  for (auto const& number : names_in(devices_folder + device + "/ports"))
    look_at_port(found, {device, std::atoi(number.c_str())}, filter);
}

}  // namespace

void look_at_rdma(findings& found) {
  found.section("RDMA");
  auto const devices = names_in(devices_folder);
  if (devices.empty()) return found.ok("devices", "none");
  try {
    auto const filter = hca_filter::from_environment();
    for (auto const& device : devices) look_at_device(found, device, filter);
  } catch (invalid_argument const& e) { found.problem("devices", e.what(), "correct the variable, or unset it"); }
  look_at_locked_memory(found);
}

}  // namespace rondo::bench
