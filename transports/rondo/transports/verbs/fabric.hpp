#pragma once

#include <rondo/detail/mirrored_memory.hpp>
#include <rondo/pollable.hpp>
#include <rondo/transports/verbs/device.hpp>
#include <rondo/transports/verbs/stream.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <infiniband/verbs.h>
#include <memory>
#include <poll.h>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// All that one rank has on its devices: streams, the devices that carry them, and the memory for both.
class verbs_fabric {
 public:
  verbs_fabric(mapping memory, std::vector<std::unique_ptr<verbs_device>> devices, std::vector<verbs_stream> streams,
               std::size_t rails)
      : memory_(std::move(memory)), devices_(std::move(devices)), streams_(std::move(streams)), rails_(rails) {}

  std::vector<verbs_stream>& streams() noexcept { return streams_; }
  std::vector<verbs_stream> const& streams() const noexcept { return streams_; }

  /// Looks at what the devices have done; true if there was anything.
  bool progress() {
    auto const before = news_;
    for (auto& d : devices_) {
      bool const alive = d->poll([&](::ibv_wc const& wc) { take(*d, wc); });
      if (!alive) fail_all(*d, d->name() + " does not answer any more");
    }
    return news_ != before;
  }

  /// Sleeps until there is news for any stream since the last time, or `patience` has run out.
  void wait(std::chrono::nanoseconds patience) {
    polled_.clear();
    auto const limit = watch(polled_);
    poll_until_ready(polled_, std::min(patience, limit));
    watched(polled_);
  }

  std::chrono::nanoseconds watch(std::vector<pollfd>& polled) {
    for (auto& s : streams_) s.push();
    for (auto const& d : devices_)
      for (pollfd const& file : d->watch()) polled.push_back(file);
    if (stirred()) return std::chrono::nanoseconds(0);
    for (auto& d : devices_) d->arm();
    return stirred() ? std::chrono::nanoseconds(0) : any_time;
  }
  void watched(std::span<pollfd const> answers) {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      if (answers[2 * i].revents != 0) devices_[i]->take_notifications();
      if (answers[2 * i + 1].revents != 0) take_events(*devices_[i]);
    }
    progress();
    seen_ = news_;
  }

  /// Tells the peers that nothing comes any more, and waits until they have all that was sent: as long as it goes on,
  /// but not for ever.
  void leave() {
    constexpr std::chrono::milliseconds most{1000}, silence{200};  // three times what a lost packet costs
    for (auto& s : streams_)
      for (auto& l : s.lanes()) l.leave();
    auto const settled = [](auto const& s) {
      return std::all_of(s.lanes().begin(), s.lanes().end(), [](auto const& l) { return l.settled(); });
    };
    auto const end = std::chrono::steady_clock::now() + most;
    auto heard = end - most;
    for (auto now = heard; now < std::min(end, heard + silence); now = std::chrono::steady_clock::now()) {
      if (std::all_of(streams_.begin(), streams_.end(), settled)) return;
      if (progress())
        heard = now;
      else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  verbs_statistics statistics() const noexcept {
    verbs_statistics sum;
    for (auto const& s : streams_)
      for (auto const& l : s.lanes()) l.add_to(sum);
    sum.locked_bytes = memory_.size();
    return sum;
  }

 private:
  verbs_lane& lane(std::uint64_t number) noexcept { return streams_[number / rails_].lanes()[number % rails_]; }

  bool stirred() { return progress() || seen_ != news_; }

  void take(verbs_device& device, ::ibv_wc const& wc) {
    ++news_;
    auto& where = lane(wc.wr_id >> 32);
    // Of a failed completion nothing else is valid, not even what kind it is.
    if (wc.status != IBV_WC_SUCCESS) {
      take_events(device);
      where.fail(std::string(::ibv_wc_status_str(wc.status)) + " on " + device.name() + notes_[&device], wc.status);
    } else if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
      where.received(wc.byte_len, wc.imm_data);
    } else {
      where.sent(wc.wr_id);
    }
  }

  void take_events(verbs_device& device) {
    device.take_events([&](::ibv_async_event const& event) {
      ++news_;
      auto const what = ::ibv_event_type_str(event.event_type) + (" on " + device.name());
      switch (event.event_type) {
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR:
          lane(reinterpret_cast<std::uintptr_t>(event.element.qp->qp_context)).fail(what);
          break;
        case IBV_EVENT_CQ_ERR:
        case IBV_EVENT_DEVICE_FATAL: fail_all(device, what); break;
        // The link may come back in time. If it does not, this is why.
        case IBV_EVENT_PORT_ERR:
          notes_[&device] = "; port " + std::to_string(event.element.port_num) + " is down";
          break;
        case IBV_EVENT_PORT_ACTIVE: notes_.erase(&device); break;
        default: break;
      }
    });
  }

  void fail_all(verbs_device& device, std::string const& why) {
    ++news_;
    for (auto& s : streams_)
      for (auto& l : s.lanes())
        if (l.queue_pair()->context == device.context()) l.fail(why);
  }

  mapping memory_;
  std::vector<std::unique_ptr<verbs_device>> devices_;
  std::vector<verbs_stream> streams_;
  std::size_t rails_;
  std::unordered_map<verbs_device const*, std::string> notes_;  // ports that are down
  std::vector<pollfd> polled_;
  std::uint64_t news_ = 0, seen_ = 0;  // completions and events, and how many there were when it was last slept for
};

}  // namespace rondo::inline v0::detail
