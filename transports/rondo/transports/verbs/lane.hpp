#pragma once

#include <rondo/transports/verbs/device.hpp>
#include <rondo/transports/verbs/immediate.hpp>
#include <rondo/transports/verbs/statistics.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <infiniband/verbs.h>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// Two byte streams, there and back, over one queue pair.
///
/// The peer has a ring of slots for what this rank writes. Each message is written into the next slot and tells by its
/// immediate data that it is there; no other order between the bytes and the news of them can be relied on. A credit is
/// a slot that is known to be free. Who receives has posted a receive for every message that can come: one for each
/// slot, and some for messages without a slot. So no message ever finds the receiver not ready.
class verbs_lane {
 public:
  /// Messages without a slot that can be on their way: as a message that only returns credits returns at least half of
  /// the slots, there are no more than two of them before one is answered, and one farewell.
  static constexpr std::uint64_t spare = 4;

  static std::uint32_t sends(std::uint64_t slots) noexcept { return static_cast<std::uint32_t>(slots + spare); }
  static std::uint32_t receives(std::uint64_t slots) noexcept { return static_cast<std::uint32_t>(slots + spare); }

  /// The rings of this rank for one queue pair: what it sends is put together in one, and the peer writes to the other.
  struct rings {
    std::byte* out;
    std::byte const* in;
    std::uint32_t key;  ///< of `out`
    std::uint64_t slots;
    std::size_t slot_bytes;
  };

  /// `number` marks what the device reports about this queue pair.
  verbs_lane(std::uint32_t number, verbs_owner<::ibv_qp> qp, std::size_t inline_bytes, rings const& memory)
      : number_(number), qp_(std::move(qp)), inline_bytes_(inline_bytes), memory_(memory),
        signal_every_(std::clamp<std::uint64_t>(memory.slots / 4, 1, 16)), credits_(memory.slots),
        log_(sends(memory.slots)), lengths_(memory.slots), receives_(receives(memory.slots)) {
    for (std::size_t i = 0; i < receives_.size(); ++i) receives_[i].wr_id = id(0);
    used_receives_ = receives_.size();
  }

  ::ibv_qp* queue_pair() const noexcept { return qp_.get(); }

  /// Posts the receives, as soon as the queue pair takes them.
  void open() { post_receives(); }

  /// Where the ring of the peer lies. From then on the lane can be used.
  void aim(std::uint64_t address, std::uint32_t key) noexcept {
    remote_ = address;
    remote_key_ = key;
  }

  std::size_t write(std::span<std::byte const> bytes, bool more) {
    std::size_t accepted = 0;
    while (accepted < bytes.size() && (filled_ > 0 || room())) {
      auto const rest = bytes.subspan(accepted);
      if (filled_ == 0 && !more && rest.size() <= inline_bytes_) {
        add(verbs_immediate::kind::data, rest.data(), rest.size());  // leaves rest before this call returns
        accepted = bytes.size();
        break;
      }
      auto const n = std::min(rest.size(), memory_.slot_bytes - filled_);
      std::memcpy(slot() + filled_, rest.data(), n);
      filled_ += n;
      accepted += n;
      if (filled_ == memory_.slot_bytes || (accepted == bytes.size() && !more)) close_slot();
    }
    post();
    return accepted;
  }

  /// Sends what writes with `more` have held back.
  void push() {
    if (filled_ > 0) close_slot();
    post();
  }

  /// Tells the peer that nothing comes any more.
  void leave() {
    if (over()) return;
    push();
    add(verbs_immediate::kind::farewell, nullptr, 0);
    post();
  }

  /// The bytes of the oldest message that has not been consumed.
  std::span<std::byte const> front() const noexcept {
    if (taken_ == arrived_) return {};
    auto const place = taken_ % memory_.slots;
    return {memory_.in + place * memory_.slot_bytes + offset_, lengths_[place] - offset_};
  }

  /// Consumes the first `n` bytes of front().
  void drop(std::size_t n) {
    offset_ += n;
    if (taken_ == arrived_ || offset_ < lengths_[taken_ % memory_.slots]) return;
    ++taken_;
    offset_ = 0;
    ++owed_;
    return_credits();
  }

  /// What the device reports about a message of the peer.
  void received(std::uint32_t bytes, std::uint32_t immediate) {
    auto const message = verbs_immediate::decode(immediate);
    ++statistics_.received;
    ++used_receives_;
    credits_ += message.credits;
    if (message.what == verbs_immediate::kind::data) lengths_[arrived_++ % memory_.slots] = bytes;
    if (message.what == verbs_immediate::kind::farewell) left_ = true;
  }

  /// The device has carried out the write with this mark, and with it all before.
  void sent(std::uint64_t mark) {
    completed_ += static_cast<std::uint32_t>(mark + 1 - completed_);
    delivered_ = log_[(completed_ - 1) % log_.size()];
    return_credits();
  }

  /// The queue pair has failed. Of several reasons the first says most, unless it is only that the queue was flushed.
  void fail(std::string why, ::ibv_wc_status status = IBV_WC_GENERAL_ERR) {
    if (status == IBV_WC_RNR_RETRY_EXC_ERR) ++statistics_.receiver_not_ready;
    if (!failed() || (status_ == IBV_WC_WR_FLUSH_ERR && status != IBV_WC_WR_FLUSH_ERR)) {
      why_ = std::move(why);
      status_ = status;
    }
  }

  bool left() const noexcept { return left_; }
  bool failed() const noexcept { return status_ != IBV_WC_SUCCESS; }
  bool over() const noexcept { return left_ || failed(); }
  std::string const& why() const noexcept { return why_; }

  /// True if nothing that was sent is under way any more.
  bool settled() const noexcept { return failed() || completed_ == posted_; }

  void add_to(verbs_statistics& sum) const noexcept {
    sum.work_requests += posted_;
    sum.completed += completed_;
    sum.receives_posted += statistics_.receives_posted;
    sum.received += statistics_.received;
    sum.credit_messages += statistics_.credit_messages;
    sum.receiver_not_ready += statistics_.receiver_not_ready;
  }

 private:
  /// Room for a message with data: its slot over there is free, and so is the one here.
  bool room() const noexcept { return !over() && credits_ > 0 && messages_ - delivered_ < memory_.slots; }

  std::byte* slot() const noexcept { return memory_.out + messages_ % memory_.slots * memory_.slot_bytes; }

  void close_slot() { add(verbs_immediate::kind::data, slot(), std::exchange(filled_, 0)); }

  /// Posts a message that only returns credits if half of the slots are owed. While the last ones have not gone yet it
  /// waits: sent() comes back to it.
  void return_credits() {
    if (owed_ < (memory_.slots + 1) / 2 || over()) return;
    if (posted_ - completed_ - (messages_ - delivered_) + 1 >= spare) return;
    add(verbs_immediate::kind::credit, nullptr, 0);
    ++statistics_.credit_messages;
    post();
  }

  /// Adds a message to the batch. The receives that are needed for what its credits permit are posted first.
  void add(verbs_immediate::kind what, std::byte const* data, std::size_t bytes) {
    post_receives();
    if (batched_ == batch_.size()) post();
    auto& part = parts_[batched_];
    auto& write = batch_[batched_];
    part = {reinterpret_cast<std::uintptr_t>(data), static_cast<std::uint32_t>(bytes), memory_.key};
    write = {};
    write.wr_id = id(posted_);
    write.sg_list = &part;
    write.num_sge = bytes > 0 ? 1 : 0;
    write.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    write.imm_data = verbs_immediate{what, static_cast<std::uint32_t>(std::exchange(owed_, 0))}.encode();
    write.wr.rdma = {remote_ + messages_ % memory_.slots * memory_.slot_bytes, remote_key_};
    if (what == verbs_immediate::kind::data) {
      ++messages_;
      --credits_;
    }
    if (bytes > 0 && bytes <= inline_bytes_) write.send_flags |= IBV_SEND_INLINE;
    // Errors are always reported.
    if (what != verbs_immediate::kind::data || posted_ % signal_every_ == signal_every_ - 1)
      write.send_flags |= IBV_SEND_SIGNALED;
    log_[posted_ % log_.size()] = messages_;
    if (batched_ > 0) batch_[batched_ - 1].next = &write;
    ++posted_;
    ++batched_;
  }

  void post() {
    if (batched_ == 0) return;
    batched_ = 0;
    if (failed()) return;
    ::ibv_send_wr* bad = nullptr;
    if (int const code = ::ibv_post_send(qp_.get(), batch_.data(), &bad); code != 0)
      fail(std::string("a write could not be posted (") + std::strerror(code) + ")");
  }

  void post_receives() {
    auto const n = std::exchange(used_receives_, 0);
    if (n == 0 || failed()) return;
    for (std::size_t i = 0; i < n; ++i) receives_[i].next = i + 1 < n ? &receives_[i + 1] : nullptr;
    ::ibv_recv_wr* bad = nullptr;
    if (int const code = ::ibv_post_recv(qp_.get(), receives_.data(), &bad); code != 0)
      fail(std::string("a receive could not be posted (") + std::strerror(code) + ")");
    statistics_.receives_posted += n;
  }

  /// The number of the lane and the low half of a mark.
  std::uint64_t id(std::uint64_t mark) const noexcept {
    return std::uint64_t{number_} << 32 | static_cast<std::uint32_t>(mark);
  }

  std::uint32_t number_;
  verbs_owner<::ibv_qp> qp_;
  std::size_t inline_bytes_;
  rings memory_;
  std::uint64_t signal_every_;
  std::uint64_t remote_ = 0;
  std::uint32_t remote_key_ = 0;

  // Out. All counters only grow: writes posted and completed, messages with data posted and known to be there.
  std::uint64_t posted_ = 0, completed_ = 0, messages_ = 0, delivered_ = 0;
  std::uint64_t credits_;
  std::size_t filled_ = 0;          // of the slot that is being put together
  std::vector<std::uint64_t> log_;  // messages_ after each write that is under way
  std::array<::ibv_send_wr, 8> batch_;
  std::array<::ibv_sge, 8> parts_;
  std::size_t batched_ = 0;

  // In: messages with data that have come and that have been consumed, and the place within the oldest.
  std::uint64_t arrived_ = 0, taken_ = 0;
  std::size_t offset_ = 0;
  std::uint64_t owed_ = 0;               // slots that were consumed since the peer was last told
  std::vector<std::uint32_t> lengths_;   // of what is in each slot
  std::vector<::ibv_recv_wr> receives_;  // all alike: a message needs no place but its slot
  std::size_t used_receives_ = 0;

  bool left_ = false;
  ::ibv_wc_status status_ = IBV_WC_SUCCESS;
  std::string why_;
  verbs_statistics statistics_;
};

}  // namespace rondo::inline v0::detail
