#pragma once

#include <rondo/error.hpp>
#include <rondo/transports/verbs/device.hpp>
#include <rondo/transports/verbs/gid.hpp>
#include <rondo/transports/verbs/hca_filter.hpp>
#include <rondo/transports/verbs/options.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <infiniband/verbs.h>
#include <memory>
#include <string>
#include <vector>

namespace rondo::inline v0::detail {

/// A port of an open device that can carry data.
struct verbs_port {
  verbs_device* device;
  std::uint8_t number;
  bool ethernet;
  std::uint16_t lid;
  ::ibv_mtu mtu;
  verbs_gid gid;

  std::string to_string() const { return device->name() + " port " + std::to_string(number); }
};

/// Why no device of this kind can be used; empty if it can.
inline std::string refusal(std::string const& device, ::ibv_transport_type kind) {
  if (kind == IBV_TRANSPORT_IB) return {};
  if (kind == IBV_TRANSPORT_IWARP)
    return device + " speaks iWARP, which has no writes with immediate data: use tcp over its network interface";
  return device + " is neither InfiniBand nor RoCE";
}

/// Why there is no list of devices, or an empty one.
inline std::string no_devices(int code) {
  std::string const text = "this machine has no RDMA device";
  return text + (code == 0 || code == ENOSYS ? "" : " that can be listed (" + std::string(std::strerror(code)) + ")") +
         (code == ENOSYS ? ", and its kernel no support for one (module ib_uverbs)" : "") +
         ": load the driver of the adapter, give the container access to /dev/infiniband, or use tcp";
}

/// The devices and ports that a rank uses.
class verbs_ports {
 public:
  /// Opens devices in the order of the system until there is a port for each rail, or no further one. Throws
  /// connect_error that says about each device why it cannot be used, if there is none.
  explicit verbs_ports(verbs_options const& options)
      : filter_(options.devices.empty() ? hca_filter::from_environment() : hca_filter(options.devices)),
        gid_index_(options.gid_index >= 0 ? options.gid_index : gid_index_from_environment()) {
    int count = 0;
    errno = 0;
    std::unique_ptr<::ibv_device*, void (*)(::ibv_device**)> const list(::ibv_get_device_list(&count),
                                                                        ::ibv_free_device_list);
    if (!list || count == 0) throw connect_error(no_devices(list ? 0 : errno));
    auto const wanted = static_cast<std::size_t>(options.rails);
    for (int i = 0; i < count && ports_.size() < wanted; ++i) look_at(list.get()[i], wanted);
    if (ports_.empty()) throw connect_error("no RDMA port can be used: " + reasons_);
  }

  std::vector<verbs_port> const& ports() const noexcept { return ports_; }
  std::vector<std::unique_ptr<verbs_device>> take_devices() noexcept { return std::move(devices_); }

 private:
  void look_at(::ibv_device* candidate, std::size_t wanted) {
    std::string const name = ::ibv_get_device_name(candidate);
    if (auto const why = refusal(name, candidate->transport_type); !why.empty()) return reject(why);
    std::unique_ptr<verbs_device> device;
    ::ibv_device_attr attributes{};
    try {
      device = std::make_unique<verbs_device>(candidate);
    } catch (connect_error const& e) { return reject(std::string(e.sentence())); }
    if (int const code = ::ibv_query_device(device->context(), &attributes); code != 0)
      return reject(name + " cannot be queried (" + std::strerror(code) + ")");
    auto const before = ports_.size();
    for (int number = 1; number <= attributes.phys_port_cnt && ports_.size() < wanted; ++number)
      if (filter_.accepts(name, number))
        look_at(*device, static_cast<std::uint8_t>(number));
      else
        reject(name + " port " + std::to_string(number) + " is left out by the filter \"" + filter_.text() + "\"");
    if (ports_.size() > before) devices_.push_back(std::move(device));
  }

  void look_at(verbs_device& device, std::uint8_t number) {
    auto const where = device.name() + " port " + std::to_string(number);
    ::ibv_port_attr attributes{};
    if (int const code = ::ibv_query_port(device.context(), number, &attributes); code != 0)
      return reject(where + " cannot be queried (" + std::strerror(code) + ")");
    if (attributes.state != IBV_PORT_ACTIVE)
      return reject(where + " is " + ::ibv_port_state_str(attributes.state) + ", not active: bring its link up");
    verbs_port port{
        &device, number, attributes.link_layer == IBV_LINK_LAYER_ETHERNET, attributes.lid, attributes.active_mtu, {}};
    std::string shown;
    for (auto const& gid : by_preference(gids(device, number))) {
      shown += (shown.empty() ? "" : ", ") + std::to_string(gid.index) + " (" + gid.to_string() + ")";
      if (gid_index_ >= 0 ? gid.index != gid_index_ : !reachable(port, gid)) continue;
      port.gid = gid;
      ports_.push_back(port);
      return;
    }
    reject(where + (gid_index_ >= 0 ? " has no GID " + std::to_string(gid_index_) : " has no GID that works") +
           "; it has " + (shown.empty() ? "none" : shown));
  }

  static std::vector<verbs_gid> gids(verbs_device const& device, std::uint8_t port) {
    std::vector<::ibv_gid_entry> entries(1024);  // of all ports; a kernel takes no more than 64 KiB at a call
    auto const n = ::ibv_query_gid_table(device.context(), entries.data(), entries.size(), 0);
    entries.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    std::vector<verbs_gid> found;
    for (auto const& e : entries) {
      if (e.port_num != port) continue;
      auto& gid = found.emplace_back();
      std::copy_n(e.gid.raw, gid.bytes.size(), gid.bytes.begin());
      gid.index = static_cast<int>(e.gid_index);
      gid.type = e.gid_type == IBV_GID_TYPE_ROCE_V2   ? verbs_gid::kind::roce_v2
                 : e.gid_type == IBV_GID_TYPE_ROCE_V1 ? verbs_gid::kind::roce_v1
                                                      : verbs_gid::kind::infiniband;
    }
    return found;
  }

  /// An entry can be there whose address the network does not have: the kernel tells when asked for a way to it.
  static bool reachable(verbs_port const& port, verbs_gid const& gid) {
    if (!port.ethernet) return true;
    ::ibv_ah_attr way{};
    std::copy(gid.bytes.begin(), gid.bytes.end(), way.grh.dgid.raw);
    way.grh.sgid_index = static_cast<std::uint8_t>(gid.index);
    way.grh.hop_limit = 64;
    way.is_global = 1;
    way.port_num = port.number;
    return verbs_owner<::ibv_ah>(::ibv_create_ah(port.device->pd(), &way)) != nullptr;
  }

  void reject(std::string const& why) { reasons_ += (reasons_.empty() ? "" : "; ") + why; }

  hca_filter filter_;
  int gid_index_;
  std::vector<std::unique_ptr<verbs_device>> devices_;
  std::vector<verbs_port> ports_;
  std::string reasons_;
};

}  // namespace rondo::inline v0::detail
