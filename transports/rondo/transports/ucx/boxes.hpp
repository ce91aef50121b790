#pragma once

#include <rondo/transports/ucx/worker.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace rondo::inline v0::detail {

/// What every message starts with: what its sender has to say about the two streams between the ranks.
struct ucx_report {
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t room = 0;      ///< so many segments the reader of this report may send in all
  std::uint64_t arrived = 0;   ///< so many of them have arrived
  std::uint64_t last = never;  ///< after so many segments the sender of this report leaves
};

/// What is known of a peer. Written within progress().
struct ucx_standing {
  bool heard = false;
  ucx_report report;
  ucs_status_t trouble = UCS_OK;

  /// Reports may overtake each other.
  void hear(ucx_report const& r) noexcept {
    heard = true;
    report.room = std::max(report.room, r.room);
    report.arrived = std::max(report.arrived, r.arrived);
    report.last = std::min(report.last, r.last);
  }
};

/// A row of slots, each for a report and up to `capacity` bytes behind it, which start at a cache line.
class ucx_row {
 public:
  static constexpr std::size_t bytes(std::size_t slots, std::size_t capacity) noexcept {
    return slots * (line + capacity);
  }

  ucx_row(std::span<std::byte> memory, std::size_t slots) noexcept
      : memory_(memory.data()), stride_(memory.size() / slots), slots_(slots) {}

  std::size_t slots() const noexcept { return slots_; }
  std::size_t capacity() const noexcept { return stride_ - line; }
  std::size_t index(std::uint64_t number) const noexcept { return static_cast<std::size_t>(number % slots_); }
  std::byte* message(std::uint64_t number) const noexcept { return payload(number) - sizeof(ucx_report); }
  std::byte* payload(std::uint64_t number) const noexcept { return memory_ + index(number) * stride_ + line; }

 private:
  static constexpr std::size_t line = 64;
  static_assert(sizeof(ucx_report) <= line);

  std::byte* memory_;
  std::size_t stride_;
  std::size_t slots_;
};

/// The kinds of messages, which are counted and matched apart.
enum class ucx_kind : std::uint64_t { segment, note };

/// The tag of a message: its kind, the rank that sends it, its number of that kind (modulo 2^32).
inline ucp_tag_t ucx_tag(ucx_kind kind, rank_t sender, std::uint64_t number) noexcept {
  return static_cast<std::uint64_t>(kind) << 63 | static_cast<std::uint64_t>(sender) << 32 |
         static_cast<std::uint32_t>(number);
}

/// Messages of one kind to a peer. A message is in the slot of its number until UCX is done with it.
class ucx_outbox {
 public:
  ucx_outbox(ucx_worker& worker, ucx_standing& peer, ucx_row row, ucx_kind kind, rank_t self)
      : worker_(&worker), peer_(&peer), row_(row), kind_(kind), self_(self), slots_(row.slots(), slot{this, false}) {}
  ucx_outbox(ucx_outbox const&) = delete;
  ucx_outbox& operator=(ucx_outbox const&) = delete;

  std::uint64_t posted() const noexcept { return posted_; }
  bool idle() const noexcept { return busy_ == 0; }
  bool has_room() const noexcept { return !slots_[row_.index(posted_)].busy; }
  std::span<std::byte> next() const noexcept { return {row_.payload(posted_), row_.capacity()}; }

  /// Sends the next message, of so many bytes behind its report. Requires room.
  void post(ucp_ep_h to, ucx_report const& report, std::size_t bytes) noexcept {
    auto& slot = slots_[row_.index(posted_)];
    auto* const message = row_.message(posted_);
    std::memcpy(message, &report, sizeof report);
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE |
                         UCP_OP_ATTR_FIELD_MEMH;
    param.cb.send = &sent;
    param.user_data = &slot;
    param.memory_type = UCS_MEMORY_TYPE_HOST;
    param.memh = worker_->registration();
    auto const request = ucp_tag_send_nbx(to, message, sizeof report + bytes, ucx_tag(kind_, self_, posted_), &param);
    ++posted_;
    if (UCS_PTR_IS_ERR(request)) {
      peer_->trouble = UCS_PTR_STATUS(request);
    } else if (UCS_PTR_IS_PTR(request)) {
      slot.busy = true;
      ++busy_;
    }
  }

 private:
  struct slot {
    ucx_outbox* box;
    bool busy;  ///< UCX still reads it
  };

  static void sent(void* request, ucs_status_t status, void* data) noexcept {
    auto& slot = *static_cast<ucx_outbox::slot*>(data);
    auto& box = *slot.box;
    slot.busy = false;
    if (box.busy_-- == box.slots_.size()) box.worker_->news = true;
    if (status != UCS_OK && box.peer_->trouble == UCS_OK) box.peer_->trouble = status;
    ucp_request_free(request);
  }

  ucx_worker* worker_;
  ucx_standing* peer_;
  ucx_row row_;
  ucx_kind kind_;
  rank_t self_;
  std::vector<slot> slots_;
  std::uint64_t posted_ = 0;
  std::size_t busy_ = 0;
};

/// Messages of one kind from a peer. Each slot always waits for the message of one number, so that none finds UCX
/// without a place for it.
class ucx_inbox {
 public:
  ucx_inbox(ucx_worker& worker, ucx_standing& peer, ucx_row row, ucx_kind kind, rank_t sender)
      : worker_(&worker), peer_(&peer), row_(row), kind_(kind), sender_(sender), slots_(row.slots(), slot{this}) {
    for (std::uint64_t n = 0; n < row.slots(); ++n) expect(n);
  }
  ucx_inbox(ucx_inbox const&) = delete;
  ucx_inbox& operator=(ucx_inbox const&) = delete;

  std::uint64_t arrived() const noexcept { return arrived_; }
  std::uint64_t taken() const noexcept { return taken_; }

  /// True if the next message is here. One may carry nothing but its report.
  bool ready() const noexcept { return slots_[row_.index(taken_)].here; }
  std::span<std::byte const> front() const noexcept { return {row_.payload(taken_), slots_[row_.index(taken_)].bytes}; }
  void pop() noexcept {
    expect(taken_ + row_.slots());
    ++taken_;
  }

  /// Expects nothing more.
  void cancel() noexcept {
    for (auto const& s : slots_)
      if (s.request) ucp_request_cancel(worker_->handle(), s.request);
  }

 private:
  struct slot {
    ucx_inbox* box;
    void* request = nullptr;  ///< while a message is expected
    bool here = false;
    std::size_t bytes = 0;
  };

  void expect(std::uint64_t number) noexcept {
    auto& slot = slots_[row_.index(number)];
    slot.here = false;
    ucp_tag_recv_info_t info{};
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_MEMORY_TYPE |
                         UCP_OP_ATTR_FIELD_RECV_INFO | UCP_OP_ATTR_FIELD_MEMH;
    param.cb.recv = &received;
    param.user_data = &slot;
    param.memory_type = UCS_MEMORY_TYPE_HOST;
    param.recv_info.tag_info = &info;
    param.memh = worker_->registration();
    auto const request =
        ucp_tag_recv_nbx(worker_->handle(), row_.message(number), sizeof(ucx_report) + row_.capacity(),
                         ucx_tag(kind_, sender_, number), std::numeric_limits<ucp_tag_t>::max(), &param);
    if (UCS_PTR_IS_PTR(request))
      slot.request = request;
    else
      settle(slot, UCS_PTR_STATUS(request), info.length);
  }

  void settle(slot& s, ucs_status_t status, std::size_t length) noexcept {
    s.request = nullptr;
    if (status == UCS_ERR_CANCELED) return;
    if (status == UCS_OK && length < sizeof(ucx_report)) status = UCS_ERR_INVALID_PARAM;
    if (status != UCS_OK) {
      if (peer_->trouble == UCS_OK) peer_->trouble = status;
    } else {
      ucx_report report;
      std::memcpy(&report, row_.message(static_cast<std::uint64_t>(&s - slots_.data())), sizeof report);
      peer_->hear(report);
      s.here = true;
      s.bytes = length - sizeof report;
      ++arrived_;
    }
    worker_->news = worker_->chores = true;
  }

  static void received(void* request, ucs_status_t status, ucp_tag_recv_info_t const* info, void* data) noexcept {
    auto& slot = *static_cast<ucx_inbox::slot*>(data);
    slot.box->settle(slot, status, info->length);
    ucp_request_free(request);
  }

  ucx_worker* worker_;
  ucx_standing* peer_;
  ucx_row row_;
  ucx_kind kind_;
  rank_t sender_;
  std::vector<slot> slots_;
  std::uint64_t arrived_ = 0, taken_ = 0;
};

}  // namespace rondo::inline v0::detail
