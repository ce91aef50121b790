#include "findings.hpp"
#include "text.hpp"
#include <rondo/transports/environment.hpp>
#include <rondo/transports/interfaces.hpp>

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fstream>
#include <map>
#include <set>
#include <vector>

namespace rondo::bench {
namespace {

/// "1500 MTU, up, 10000 Mb/s".
std::string interface_facts(std::string const& name) {
  auto const folder = "/sys/class/net/" + name + "/";
  auto text = fmt::format("MTU {}, {}", first_line(folder + "mtu"), first_line(folder + "operstate"));
  auto const speed = std::atol(first_line(folder + "speed").c_str());
  return speed > 0 ? fmt::format("{}, {} Mb/s", text, speed) : text;
}

std::string gpu_model(std::string const& bus) {
  std::ifstream file("/proc/driver/nvidia/gpus/" + bus + "/information");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("Model:")) return line.substr(line.find_first_not_of(" \t", 6));
  return "unknown model";
}

}  // namespace

void look_at_network(findings& found) {
  found.section("Network");
  auto const filter = interface_filter::from_environment();
  std::vector<interface_address> all, used;
  std::string why;
  try {
    all = interface_addresses();
    used = usable_addresses(all, filter);
  } catch (error const& e) { why = e.what(); }
  std::map<std::string, std::vector<std::string>> addresses;
  std::set<std::string> chosen;
  for (auto const& a : all) addresses[a.interface].push_back(a.address.to_string());
  for (auto const& a : used) chosen.insert(a.interface);
  for (auto const& [name, list] : addresses)
    found.ok(name, fmt::format("{} ({}){}", join_words(list), interface_facts(name),
                               chosen.contains(name) ? ", used" : ", not used"));
  for (auto const& name : names_in("/sys/class/net"))
    if (!addresses.contains(name)) found.ok(name, fmt::format("no address, or down ({})", interface_facts(name)));
  if (!why.empty())
    found.problem("TCP", why, "set RONDO_SOCKET_IFNAME to an interface that is up, or unset it");
  else if (!filter.is_default())
    found.note("TCP", fmt::format("interfaces are chosen by '{}' from the environment", filter.text()));
  else if (chosen.size() == 1 && chosen.contains("lo"))
    found.note("TCP", "only loopback is up: ranks on other hosts cannot be reached",
               "bring an interface up, if there are other hosts");
  else
    found.ok("TCP", "RONDO_SOCKET_IFNAME chooses other interfaces: eth0, ^docker, =eth0,eth1");
}

void look_at_gpus(findings& found) {
  found.section("GPUs");
  auto const gpus = names_in("/proc/driver/nvidia/gpus");
  for (auto const& bus : gpus) found.ok("GPU", fmt::format("{} at {}", gpu_model(bus), bus));
  auto const nodes = names_in("/dev");
  bool const openable = std::find(nodes.begin(), nodes.end(), "nvidia0") != nodes.end();
  if (gpus.empty())
    found.ok("GPU", openable ? "device files but no driver information: what drives them is unknown"
                             : "none with an NVIDIA driver");
  else if (!openable)
    found.problem("GPU", "the driver knows GPUs, but /dev/nvidia0 is missing here",
                  "start the container with --gpus all");
  if (gpus.size() > 1) found.note("peer access", "nvidia-smi topo -p2p r shows which GPUs can address each other");
}

std::string launcher_variables() {
  try {
    auto const who = environment::detect();
    if (who.launcher.empty()) return {};
    return fmt::format("{} says that this is rank {} of {}{}", who.launcher, who.rank, who.size,
                       who.address.empty() ? ", all on this host"
                                           : fmt::format(", rank 0 is at {} port {}", who.address, who.port));
  } catch (error const& e) { return fmt::format("contradictory: {}", e.what()); }
}

}  // namespace rondo::bench
