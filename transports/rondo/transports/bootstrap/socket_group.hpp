#pragma once

#include <rondo/detail/text.hpp>
#include <rondo/group.hpp>
#include <rondo/transports/bootstrap/control_link.hpp>
#include <rondo/transports/bootstrap/hub_keeper.hpp>
#include <rondo/transports/bootstrap/solo_group.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

namespace detail {

/// What all groups of one rank share. On rank 0 also the hub, which must outlive the rank's own link.
struct control_session {
  control_session(hub_owner h, frame_stream stream, identity who)
      : hub(std::move(h)), link(std::move(stream), std::move(who)) {}

  hub_owner hub;
  control_link link;
};

}  // namespace detail

/// A group whose ranks each keep one socket to a coordinator in the process of rank 0 of the job.
///
/// Ranks may be processes or threads. Every rank has one control thread, rank 0 two; they sleep while nothing happens.
/// A process that dies fails every group it belongs to within about 100 ms. A rank that destroys its group has left it:
/// nobody fails, until somebody waits for it in an exchange or reports that it did. The coordinator serves as long as
/// the process of rank 0 lives; when that has ended in good order, the remaining groups go on without a control plane:
/// exchange() and split() throw peer_lost, verdicts stay local.
/// Thread-safe, but exchange() and split() of one group must not overlap.
class socket_group final : public group, private detail::link_listener {
 public:
  /// The group `id` of `members` (job ranks, by rank of the group), seen from `rank`. Used by join() and split().
  socket_group(std::shared_ptr<detail::control_session> session, std::uint64_t id, std::vector<rank_t> members,
               rank_t rank)
      : group(rank, static_cast<int>(members.size())), session_(std::move(session)), id_(id),
        members_(std::move(members)), departed_(members_.size()) {
    for (auto& d : departed_) d.store(here, std::memory_order_relaxed);
    auto const lock = link().lock();
    link().subscribe(id_, *this);
    if (link().hub_gone()) on_hub_gone(link().hub_left());
    if (id_ == 0) return;  // the coordinator opens the job's own group by itself
    detail::packer out;
    out.number(static_cast<std::uint32_t>(members_.size()));
    for (rank_t const r : members_) out.number(r);
    link().push(detail::message::open, id_, out);
  }

  ~socket_group() override {
    auto const lock = link().lock();
    link().unsubscribe(id_);
    try {
      link().push(detail::message::leave, id_, detail::packer{}.number(finished()));
    } catch (std::exception const&) {}  // the goodbye of the process says it too
  }

  /// A blob holds at most 1 MiB; throws invalid_argument before anything is sent.
  std::vector<std::string> exchange(std::string_view mine, clock::time_point deadline) override {
    using detail::message;
    if (mine.size() > detail::frame_stream::member_limit)
      throw invalid_argument(detail::text_of({"exchange carries blobs of at most 1 MiB, this one has ", mine.size(),
                                              " bytes: send it through a transport"}));
    auto lock = link().lock();
    auto const settled = [this] { return gathered_ || failed() || link().hub_gone(); };
    gathered_ = false;
    pieces_.clear();
    ++round_;
    if (!failed()) link().push(message::contribute, id_, detail::packer{}.number(round_).text(mine));
    bool const late = !link().changed().wait_until(lock, deadline, settled);
    if (late) {
      link().push(message::overdue, id_, detail::packer{}.number(round_));
      if (!link().changed().wait_for(lock, patience, settled)) fail(silence(failure::kind::deadline));
    }
    if (gathered_) return unpack_pieces();
    if (!failed())
      throw peer_lost(detail::text_of({"rank 0 of the job has left, so exchange ", round_,
                                       " cannot be done: let the process of rank 0 end last"}),
                      find(0));
    auto const why = verdict();
    if (late) throw connect_error(why.what, why.rank);
    why.raise();
  }

  std::shared_ptr<group> split(int color, int key, clock::time_point deadline) override {
    auto const answers = exchange(detail::packer{}.number(color).number(key), deadline);
    if (color < 0) return nullptr;
    std::vector<std::pair<int, rank_t>> order;  // (key, rank)
    for (rank_t r = 0; r < size(); ++r) {
      detail::unpacker in(answers[static_cast<std::size_t>(r)]);
      if (in.number<int>() == color) order.emplace_back(in.number<int>(), r);
    }
    if (order.size() == 1) return std::make_shared<solo_group>();
    std::sort(order.begin(), order.end());
    std::vector<rank_t> members;
    rank_t mine = nobody;
    for (auto const& [ignored, r] : order) {
      if (r == rank()) mine = static_cast<rank_t>(members.size());
      members.push_back(members_[static_cast<std::size_t>(r)]);
    }
    return std::make_shared<socket_group>(session_, name_of(color), std::move(members), mine);
  }

  void report(failure why) noexcept override {
    if (why.why == failure::kind::none || failed()) return;
    try {
      auto lock = link().lock();
      detail::packer out;
      detail::pack(out, why);
      link().push(detail::message::report, id_, out.number(entered()));
      link().changed().wait_for(lock, patience, [this] { return failed() || link().hub_gone(); });
      if (!failed()) fail(link().hub_gone() ? std::move(why) : silence(why.why));
    } catch (std::exception const&) { fail(std::move(why)); }
  }

  std::optional<std::uint64_t> departed(rank_t rank) const noexcept override {
    auto const after = departed_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire);
    return after == here ? std::nullopt : std::optional(after);
  }

 private:
  /// The coordinator answers within 300 ms if it is there at all.
  static constexpr auto patience = std::chrono::milliseconds(700);
  static constexpr std::uint64_t here = std::numeric_limits<std::uint64_t>::max();

  detail::control_link& link() const noexcept { return session_->link; }

  /// The same number on all members, and no other group has it: the first bytes of a hash of what makes the group.
  std::uint64_t name_of(int color) const {
    auto const hash = detail::sha256{}.update(detail::packer{}.number(id_).number(round_).number(color)).finish();
    return detail::unpacker(detail::view(hash)).number<std::uint64_t>() | 1;  // 0 is the job itself
  }

  rank_t find(rank_t job_rank) const noexcept {
    auto const at = std::find(members_.begin(), members_.end(), job_rank);
    return at == members_.end() ? nobody : static_cast<rank_t>(at - members_.begin());
  }

  failure silence(failure::kind why) const {
    return {
        why, find(0),
        detail::text_of({"rank 0 of the job (", link().hub().text(), ") does not answer: it is stopped or cut off"})};
  }

  void on_frame(detail::frame const& f) override {
    using detail::message;
    detail::unpacker in(f.payload);
    switch (f.kind) {
      case message::verdict: return fail(detail::unpack_failure(in, size()));
      case message::probe:
        return link().push(message::progress, id_,
                           detail::packer{}.number(in.number<std::uint64_t>()).number(entered()).number(finished()));
      case message::departed: {
        auto const who = in.number<rank_t>();
        if (who < 0 || who >= size()) throw detail::malformed{};
        departed_[static_cast<std::size_t>(who)].store(in.number<std::uint64_t>(), std::memory_order_release);
        return;
      }
      case message::gathered: {
        if (in.number<std::uint64_t>() != round_) throw detail::malformed{};
        gathered_ = in.number<std::uint8_t>() != 0;
        pieces_ += in.rest();
        if (pieces_.size() > members_.size() * (detail::frame_stream::member_limit + 4)) throw detail::malformed{};
        return;
      }
      default: throw detail::malformed{};
    }
  }

  void on_hub_gone(bool cleanly) override {
    auto const first = find(0);
    if (!cleanly && first != nobody && !departed(first))
      fail({failure::kind::peer_lost, first,
            detail::text_of({"rank ", first, " (", link().hub().text(),
                             ") died: its control connection broke without a goodbye"})});
  }

  std::vector<std::string> unpack_pieces() const {
    detail::unpacker in(pieces_);
    std::vector<std::string> blobs(members_.size());
    for (auto& blob : blobs) blob = in.text();
    return blobs;
  }

  std::shared_ptr<detail::control_session> session_;
  std::uint64_t id_;
  std::vector<rank_t> members_;
  std::uint64_t round_ = 0;
  bool gathered_ = false;
  std::string pieces_;
  std::vector<std::atomic<std::uint64_t>> departed_;  // the last call that a rank had finished when it left, or here
};

}  // namespace rondo::inline v0
