#pragma once

#include <rondo/error.hpp>
#include <rondo/transports/ucx/boxes.hpp>
#include <rondo/transports/ucx/options.hpp>
#include <rondo/transports/ucx/worker.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace rondo::inline v0::detail {

/// The two byte streams between this rank and one peer: numbered segments in a window of slots, and notes that say how
/// many more the peer may send.
///
/// Calls that find too little are repeated by the mesh after it has looked what has come.
class ucx_stream {
 public:
  /// The memory that a stream needs for its slots.
  static constexpr std::size_t bytes(ucx_options const& options) noexcept {
    return 2 * (ucx_row::bytes(window(options), options.slot_bytes) + ucx_row::bytes(notes, 0));
  }

  ucx_stream(ucx_worker& worker, rank_t self, rank_t peer, std::span<std::byte> memory, ucx_options const& options)
      : worker_(&worker), peer_(peer), slots_(std::move(memory)), window_(window(options)),
        out_(worker, standing_, take(window_, options.slot_bytes), ucx_kind::segment, self),
        in_(worker, standing_, take(window_, options.slot_bytes), ucx_kind::segment, peer),
        notes_out_(worker, standing_, take(notes, 0), ucx_kind::note, self),
        notes_in_(worker, standing_, take(notes, 0), ucx_kind::note, peer) {}
  ucx_stream(ucx_stream const&) = delete;
  ucx_stream& operator=(ucx_stream const&) = delete;

  rank_t peer() const noexcept { return peer_; }
  bool holds() const noexcept { return held_ > 0; }
  bool heard() const noexcept { return standing_.heard; }

  /// What UCX says about a stream that has failed; empty if it has not.
  std::string trouble() const { return standing_.trouble == UCS_OK ? std::string() : ucx_text(standing_.trouble); }

  /// Starts to connect, and says hello.
  void connect(std::string const& address) {
    ucp_ep_params_t params{};
    params.field_mask =
        UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.address = reinterpret_cast<ucp_address_t const*>(address.data());
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = &failed;
    params.err_handler.arg = this;
    standing_.trouble = ucp_ep_create(worker_->handle(), &params, &endpoint_);
    if (standing_.trouble == UCS_OK) note();
  }

  /// Accepts what there are free slots for.
  std::size_t write(std::span<std::byte const> bytes, bool more) {
    if (standing_.trouble != UCS_OK || has_left()) lost();
    std::size_t accepted = 0;
    while (accepted < bytes.size() && standing_.trouble == UCS_OK && (held_ > 0 || may_send())) {
      auto const slot = out_.next().subspan(held_);
      auto const n = std::min(slot.size(), bytes.size() - accepted);
      std::memcpy(slot.data(), bytes.data() + accepted, n);
      accepted += n;
      held_ += n;
      if (n == slot.size()) push();
    }
    if (!more) push();
    return accepted;
  }

  /// Sends what writes with `more` have held back.
  void push() noexcept {
    if (held_ == 0 || standing_.trouble != UCS_OK) return;
    told_ = report();
    out_.post(endpoint_, told_, std::exchange(held_, 0));
  }

  std::span<std::byte const> readable(std::size_t need) {
    if (last_ == first_ && rest().size() >= need) return rest();
    if (last_ - first_ < need) stage();
    if (last_ - first_ < need) return {};
    return {staging_.get() + first_, last_ - first_};
  }

  void consume(std::size_t n) noexcept {
    if (first_ == last_) return drop(n);
    first_ += n;
    if (first_ == last_) first_ = last_ = 0;
  }

  std::size_t read(std::span<std::byte> into) noexcept {
    std::size_t done = std::min(into.size(), last_ - first_);
    if (done > 0) {
      std::memcpy(into.data(), staging_.get() + first_, done);
      consume(done);
    }
    while (done < into.size() && in_.ready()) {
      auto const part = rest().first(std::min(rest().size(), into.size() - done));
      std::memcpy(into.data() + done, part.data(), part.size());
      done += part.size();
      drop(part.size());
    }
    return done;
  }

  /// Throws peer_lost if nothing more can come.
  void expect_more() const {
    bool const all_here = has_left() && in_.taken() == standing_.report.last;
    if (all_here || (standing_.trouble != UCS_OK && !in_.ready())) lost();
  }

  /// Takes notice of notes, and sends one if the peer may be waiting for it.
  void do_chores() noexcept {
    while (notes_in_.ready()) notes_in_.pop();
    if (!endpoint_ || standing_.trouble != UCS_OK) return;
    bool const makes_room = report().room - told_.room >= window_ / 2;
    bool const bids_farewell = leaving_ && told_.last == ucx_report::never;
    bool const answers_farewell = has_left() && in_.arrived() >= standing_.report.last && told_.arrived < in_.arrived();
    if ((makes_room && !has_left()) || bids_farewell || answers_farewell) note();
  }

  /// Sends what was held back and that nothing more will come.
  void leave() noexcept {
    push();
    leaving_ = true;
    do_chores();
  }

  /// After leave(): true when the peer has everything, or will read nothing more and knows that this rank needs
  /// nothing.
  bool settled() const noexcept {
    if (!endpoint_ || standing_.trouble != UCS_OK) return true;
    if (told_.last == ucx_report::never || !notes_out_.idle()) return false;
    if (has_left()) return in_.arrived() >= standing_.report.last && told_.arrived >= standing_.report.last;
    return out_.idle() && standing_.report.arrived >= out_.posted();
  }

  /// What is to be waited for until all that was sent needs this rank no more.
  ucs_status_ptr_t flush() noexcept {
    ucp_request_param_t const plain{};
    return endpoint_ && standing_.trouble == UCS_OK ? ucp_ep_flush_nbx(endpoint_, &plain) : nullptr;
  }

  /// Grows with whatever comes from the peer.
  std::uint64_t signs() const noexcept { return in_.arrived() + notes_in_.arrived(); }

  /// Expects nothing more. What still came before the connection is closed would lie in UCX without a place for it.
  void cancel() noexcept {
    in_.cancel();
    notes_in_.cancel();
  }

  /// Closes the connection at once. Returns what is to be waited for until UCX is done with it.
  ucs_status_ptr_t close() noexcept {
    if (!endpoint_) return nullptr;
    ucp_request_param_t param{};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = UCP_EP_CLOSE_FLAG_FORCE;
    return ucp_ep_close_nbx(std::exchange(endpoint_, nullptr), &param);
  }

 private:
  static constexpr std::size_t notes = 8;                          // at most about five are under way
  static constexpr std::size_t capacity = std::size_t{128} << 10;  // twice the largest `need`

  static constexpr std::size_t window(ucx_options const& options) noexcept {
    return static_cast<std::size_t>(options.window);
  }

  ucx_row take(std::size_t slots, std::size_t capacity_of_each) noexcept {
    auto const n = ucx_row::bytes(slots, capacity_of_each);
    ucx_row const row(slots_.first(n), slots);
    slots_ = slots_.subspan(n);
    return row;
  }

  static void failed(void* stream, ucp_ep_h, ucs_status_t status) noexcept {
    auto& self = *static_cast<ucx_stream*>(stream);
    if (self.standing_.trouble == UCS_OK) self.standing_.trouble = status;
    self.worker_->news = true;
  }

  bool has_left() const noexcept { return standing_.report.last != ucx_report::never; }
  bool may_send() const noexcept { return out_.has_room() && out_.posted() < standing_.report.room; }

  ucx_report report() const noexcept {
    return {in_.taken() + window_, in_.arrived(), leaving_ ? out_.posted() : ucx_report::never};
  }

  void note() noexcept {
    if (notes_out_.has_room()) {
      told_ = report();
      notes_out_.post(endpoint_, told_, 0);
    } else {
      worker_->chores = true;  // later
    }
  }

  /// What is left of the oldest segment.
  std::span<std::byte const> rest() const noexcept {
    return in_.ready() ? in_.front().subspan(offset_) : std::span<std::byte const>();
  }

  void drop(std::size_t n) noexcept {
    offset_ += n;
    if (!in_.ready() || offset_ < in_.front().size()) return;
    offset_ = 0;
    in_.pop();
    if (report().room - told_.room >= window_ / 2) worker_->chores = true;
  }

  void stage() {
    if (!staging_) staging_ = std::make_unique_for_overwrite<std::byte[]>(capacity);
    if (first_ > 0) std::memmove(staging_.get(), staging_.get() + first_, last_ - first_);
    last_ -= std::exchange(first_, 0);
    while (last_ < capacity && in_.ready()) {
      auto const part = rest().first(std::min(rest().size(), capacity - last_));
      std::memcpy(staging_.get() + last_, part.data(), part.size());
      last_ += part.size();
      drop(part.size());
    }
  }

  [[noreturn]] void lost() const {
    auto const who = "rank " + std::to_string(peer_);
    throw peer_lost(who +
                        (has_left() ? " has left: it has closed its UCX streams"
                                    : " has left or died: its UCX endpoint failed (" + trouble() + ")") +
                        "; see the output of that rank",
                    peer_);
  }

  ucx_worker* worker_;
  rank_t peer_;
  std::span<std::byte> slots_;  // not given to a row yet
  std::size_t window_;
  ucx_standing standing_;
  ucx_outbox out_;
  ucx_inbox in_;
  ucx_outbox notes_out_;
  ucx_inbox notes_in_;
  ucp_ep_h endpoint_ = nullptr;

  std::size_t held_ = 0;    // bytes in the next slot, not sent yet
  std::size_t offset_ = 0;  // bytes of the oldest segment that were consumed
  std::unique_ptr<std::byte[]> staging_;
  std::size_t first_ = 0, last_ = 0;  // what is staged
  ucx_report told_;                   // what the last report said
  bool leaving_ = false;
};

}  // namespace rondo::inline v0::detail
