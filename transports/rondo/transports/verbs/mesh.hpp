#pragma once

#include <rondo/detail/mirrored_memory.hpp>
#include <rondo/group.hpp>
#include <rondo/transports/verbs/fabric.hpp>
#include <rondo/transports/verbs/options.hpp>
#include <rondo/transports/verbs/ports.hpp>
#include <rondo/transports/verbs/wiring.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <infiniband/verbs.h>
#include <memory>
#include <random>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// What both ends of a queue pair can take in one packet.
inline ::ibv_mtu common_mtu(::ibv_mtu a, ::ibv_mtu b) noexcept { return std::min(a, b); }

/// The queue pairs of one rank while they are being connected, each with one of every other rank.
class verbs_mesh {
 public:
  verbs_mesh(group const& ranks, verbs_options const& options) : ranks_(ranks), options_(options) {}

  /// Opens the devices and makes the queue pairs; returns what the peers need to know.
  verbs_wiring open() {
    check();
    mine_.stripe = options_.stripe;
    mine_.slots = static_cast<std::uint64_t>(options_.slots);
    mine_.slot_bytes = options_.slot_bytes;
    if (ranks_.size() == 1) return mine_;
    verbs_ports found(options_);
    for (std::size_t i = 0; i < rails(); ++i) ports_.push_back(found.ports()[i % found.ports().size()]);
    devices_ = found.take_devices();
    make_memory();
    for (auto const& port : ports_) {
      auto const& memory = port.device->memory();
      mine_.rails.push_back({port.ethernet, port.gid.bytes, port.lid, static_cast<std::uint8_t>(port.mtu),
                             reinterpret_cast<std::uintptr_t>(memory.addr), memory.rkey});
    }
    mine_.queue_pairs.resize(static_cast<std::size_t>(ranks_.size()) * rails());
    std::random_device random;  // numbers that no packet of an earlier queue pair can have
    for (rank_t q = 0; q < ranks_.size(); ++q) {
      std::vector<verbs_lane> lanes;
      for (std::size_t rail = 0; q != ranks_.rank() && rail < rails(); ++rail) {
        lanes.push_back(make_lane(q, rail));
        mine_.queue_pairs[number(q, rail)] = {lanes.back().queue_pair()->qp_num,
                                              static_cast<std::uint32_t>(random()) & 0xffffffu};
      }
      streams_.emplace_back(q, std::move(lanes), options_.stripe);
    }
    return mine_;
  }

  /// Connects the queue pairs with those of the peers; returns why not, or an empty text.
  std::string connect(std::vector<verbs_wiring> const& wirings) {
    for (rank_t q = 0; ranks_.size() > 1 && q < ranks_.size(); ++q)
      for (std::size_t rail = 0; q != ranks_.rank() && rail < rails(); ++rail) {
        auto& lane = streams_[static_cast<std::size_t>(q)].lanes()[rail];
        auto const& theirs = wirings[static_cast<std::size_t>(q)];
        if (auto const why = connect(*lane.queue_pair(), q, rail, theirs); !why.empty()) return why;
        lane.aim(theirs.rails[rail].memory + ring_at(q, ranks_.rank(), rail), theirs.rails[rail].key);
      }
    return {};
  }

  /// What has been connected.
  std::unique_ptr<verbs_fabric> take() {
    if (ranks_.size() == 1) streams_.emplace_back(0, std::vector<verbs_lane>(), options_.stripe);
    return std::make_unique<verbs_fabric>(std::move(memory_), std::move(devices_), std::move(streams_), rails());
  }

 private:
  static constexpr std::uint32_t inline_bytes = 220;  // what most devices can take along in a work request
  static constexpr std::uint8_t hops = 64;
  static constexpr std::uint8_t rnr_timer = 12;   // 0.64 ms; 0 would be the longest, 655 ms
  static constexpr std::uint8_t rnr_retries = 3;  // never needed: a mistake shall show at once

  std::size_t rails() const noexcept { return static_cast<std::size_t>(options_.rails); }
  std::size_t number(rank_t peer, std::size_t rail) const noexcept {
    return static_cast<std::size_t>(peer) * rails() + rail;
  }

  /// A ring takes whole pages, so that nothing else shares one with it.
  std::size_t ring_bytes() const noexcept {
    auto const page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return (mine_.slots * mine_.slot_bytes + page - 1) / page * page;
  }

  /// Where, in the memory of `owner`, the ring lies that `peer` writes to. Behind all of these are those for sending.
  std::size_t ring_at(rank_t owner, rank_t peer, std::size_t rail) const noexcept {
    return number(peer < owner ? peer : peer - 1, rail) * ring_bytes();
  }
  std::size_t half() const noexcept { return number(ranks_.size() - 1, 0) * ring_bytes(); }

  void check() const {
    auto const& o = options_;
    if (o.rails < 1 || o.rails > 64 || o.stripe < 1)
      throw invalid_argument("verbs_options needs 1 to 64 rails and at least one byte in a stripe");
    if (o.slots < 2 || o.slots > 4096 || o.slot_bytes < 1 || o.slot_bytes > std::size_t{8} << 20)
      throw invalid_argument("verbs_options needs 2 to 4096 slots of 1 byte to 8 MiB");
    if (o.retries < 0 || o.retries > 6 || o.timeout < 1 || o.timeout > 31)
      throw invalid_argument("verbs_options needs 0 to 6 retries and a timeout of 1 to 31");
    if (o.traffic_class < 0 || o.traffic_class > 255 || o.service_level < 0 || o.service_level > 15)
      throw invalid_argument("verbs_options needs a traffic class of 0 to 255 and a service level of 0 to 15");
  }

  void make_memory() {
    ::ibv_fork_init();  // in vain if the program has registered memory before, but then it is past changing
    memory_ = mapping(map_or_throw(nullptr, 2 * half(), MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 2 * half());
    for (auto& d : devices_) {
      auto const lanes = static_cast<int>(std::count_if(ports_.begin(), ports_.end(),
                                                        [&](auto const& p) { return p.device == d.get(); })) *
                         (ranks_.size() - 1);
      d->make_queues(lanes * static_cast<int>(verbs_lane::sends(mine_.slots)),
                     lanes * static_cast<int>(verbs_lane::receives(mine_.slots)));
      d->register_memory(memory_.data(), memory_.size());
    }
  }

  verbs_lane make_lane(rank_t peer, std::size_t rail) const {
    auto const& port = ports_[rail];
    ::ibv_qp_init_attr wanted{};
    wanted.qp_context = reinterpret_cast<void*>(std::uintptr_t{number(peer, rail)});
    wanted.send_cq = port.device->send_queue();
    wanted.recv_cq = port.device->receive_queue();
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {verbs_lane::sends(mine_.slots), verbs_lane::receives(mine_.slots), 1, 1, inline_bytes};
    verbs_owner<::ibv_qp> qp(::ibv_create_qp(port.device->pd(), &wanted));
    if (!qp) {
      wanted.cap.max_inline_data = 0;
      qp.reset(::ibv_create_qp(port.device->pd(), &wanted));
    }
    if (!qp)
      throw connect_error(port.device->name() + " cannot make a queue pair (" + std::strerror(errno) +
                          "); use fewer ranks, rails or slots");
    ::ibv_qp_attr initial{};
    initial.qp_state = IBV_QPS_INIT;
    initial.port_num = port.number;
    initial.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    if (int const code =
            ::ibv_modify_qp(qp.get(), &initial, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
        code != 0)
      throw connect_error(port.to_string() + " cannot use a queue pair (" + std::strerror(code) + ")");
    auto const granted = std::min<std::size_t>(wanted.cap.max_inline_data, mine_.slot_bytes);
    std::byte* const in = memory_.data() + ring_at(ranks_.rank(), peer, rail);
    verbs_lane lane(static_cast<std::uint32_t>(number(peer, rail)), std::move(qp), granted,
                    {in + half(), in, port.device->memory().lkey, mine_.slots, mine_.slot_bytes});
    lane.open();
    return lane;
  }

  std::string connect(::ibv_qp& qp, rank_t peer, std::size_t rail, verbs_wiring const& wiring) const {
    auto const& port = ports_[rail];
    auto const& theirs = wiring.rails[rail];
    auto const& end = wiring.of(ranks_.rank(), rail);
    verbs_gid their_gid;
    their_gid.bytes = theirs.gid;
    auto const failed = [&](char const* what, int code) {
      return "rank " + std::to_string(ranks_.rank()) + " cannot connect " + port.to_string() + " (" +
             (port.ethernet ? "GID " + port.gid.to_string() : "LID " + std::to_string(port.lid)) + ") with rank " +
             std::to_string(peer) + " (" +
             (theirs.ethernet ? "GID " + their_gid.to_string() : "LID " + std::to_string(theirs.lid)) + "): " + what +
             (code == 0 ? "" : std::string(" (") + std::strerror(code) + ")") +
             "; choose the devices with RONDO_IB_HCA and their address with RONDO_IB_GID_INDEX";
    };
    if (port.ethernet != theirs.ethernet) return failed("one is InfiniBand and the other Ethernet", 0);
    ::ibv_qp_attr ready{};
    ready.qp_state = IBV_QPS_RTR;
    ready.path_mtu = common_mtu(port.mtu, static_cast<::ibv_mtu>(theirs.mtu));
    ready.dest_qp_num = end.number;
    ready.rq_psn = end.psn;
    ready.min_rnr_timer = rnr_timer;
    ready.ah_attr.port_num = port.number;
    ready.ah_attr.sl = static_cast<std::uint8_t>(options_.service_level);
    ready.ah_attr.dlid = theirs.lid;
    // Within one InfiniBand subnet, which is what the first half of a GID names, local addresses do.
    if (port.ethernet || !std::equal(theirs.gid.begin(), theirs.gid.begin() + 8, port.gid.bytes.begin())) {
      ready.ah_attr.is_global = 1;
      std::copy(theirs.gid.begin(), theirs.gid.end(), ready.ah_attr.grh.dgid.raw);
      ready.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(port.gid.index);
      ready.ah_attr.grh.hop_limit = hops;
      ready.ah_attr.grh.traffic_class = static_cast<std::uint8_t>(options_.traffic_class);
    }
    if (int const code = ::ibv_modify_qp(&qp, &ready,
                                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
        code != 0)
      return failed("there is no way", code);
    ::ibv_qp_attr sending{};
    sending.qp_state = IBV_QPS_RTS;
    sending.sq_psn = mine_.of(peer, rail).psn;
    sending.timeout = static_cast<std::uint8_t>(options_.timeout);
    sending.retry_cnt = static_cast<std::uint8_t>(options_.retries);
    sending.rnr_retry = rnr_retries;
    if (int const code = ::ibv_modify_qp(&qp, &sending,
                                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
        code != 0)
      return failed("the queue pair cannot send", code);
    return {};
  }

  group const& ranks_;
  verbs_options const& options_;
  verbs_wiring mine_;
  mapping memory_;
  std::vector<std::unique_ptr<verbs_device>> devices_;
  std::vector<verbs_port> ports_;  // by rail
  std::vector<verbs_stream> streams_;
};

}  // namespace rondo::inline v0::detail
