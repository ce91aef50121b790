#pragma once

#include <rondo/detail/text.hpp>
#include <rondo/transports/bootstrap/endpoint.hpp>
#include <rondo/transports/bootstrap/frame_stream.hpp>
#include <rondo/transports/bootstrap/wire.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// "rank 3", "ranks 3 and 5", "ranks 3, 5 and 8 more"
inline std::string name_ranks(std::vector<rank_t> const& ranks) {
  constexpr std::size_t most = 8;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < std::min(ranks.size(), most); ++i)
    text += text_of({i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]});
  if (ranks.size() > most) text += text_of({" and ", ranks.size() - most, " more"});
  return text;
}

/// One group as the coordinator sees it: collects blobs, finds out who is at fault, and issues the one verdict.
/// Ranks are those of the group. Pure bookkeeping: bytes leave through `send`, time comes in as an argument.
class hosted_group {
 public:
  using send_to = std::function<void(rank_t job_rank, message, std::uint64_t group, std::string_view payload)>;

  /// How long a report waits for the ranks to answer a probe, and for a peer's connection to show how it ended.
  static constexpr auto probe_patience = std::chrono::milliseconds(300);
  static constexpr auto close_patience = std::chrono::milliseconds(100);

  /// `members`: by rank of the group, their ranks in the job.
  hosted_group(std::uint64_t id, std::vector<rank_t> members, send_to send)
      : id_(id), members_(std::move(members)), send_(std::move(send)), states_(members_.size()) {}

  std::vector<rank_t> const& members() const noexcept { return members_; }
  failure const& verdict() const noexcept { return verdict_; }

  /// The rank of the group that `job_rank` has, or nobody.
  rank_t find(rank_t job_rank) const noexcept {
    auto const at = std::find(members_.begin(), members_.end(), job_rank);
    return at == members_.end() ? nobody : static_cast<rank_t>(at - members_.begin());
  }

  /// No member is left that could ask for anything.
  bool deserted() const noexcept {
    return std::all_of(states_.begin(), states_.end(), [](auto const& s) { return s.left || s.lost; });
  }
  bool complete() const noexcept {
    return std::all_of(states_.begin(), states_.end(), [](auto const& s) { return s.opened; });
  }

  /// From now on the member hears of the group; it catches up on what has happened.
  void open(rank_t rank) {
    state_of(rank).opened = true;
    if (verdict_.why != failure::kind::none) return tell(rank, message::verdict, packed_verdict());
    for (rank_t r = 0; r < size(); ++r)
      if (state_of(r).left) tell(rank, message::departed, packer{}.number(r).number(state_of(r).finished));
  }

  void contribute(rank_t rank, std::uint64_t round, std::string_view blob) {
    auto& mine = state_of(rank);
    if (decided()) return;
    if (round != round_ || mine.blob || blob.size() > frame_stream::member_limit) throw malformed{};
    mine.blob = blob;
    settle_round();
  }

  void overdue(std::uint64_t round) {
    if (decided() || round != round_) return;
    auto const late = missing();
    if (late.empty()) return;
    fail({failure::kind::deadline, late.front(),
          id_ == 0 && round_ == 1
              ? text_of({name_ranks(late),
                         " did not join in time: were they started, with the same address, port and token?"})
              : text_of({name_ranks(late), " did not take part in exchange ", round_, " in time"})});
  }

  void report(rank_t reporter, failure why, std::uint64_t entered, steady::time_point now) {
    if (decided() || inquiry_) return;
    switch (why.why) {
      case failure::kind::deadline:
        inquiry_ = inquiry{std::move(why), entered, now + probe_patience};
        ++probe_;
        for (rank_t r = 0; r < size(); ++r) {
          state_of(r).progress = {entered, 0, r == reporter};
          if (r != reporter && reachable(r)) send_(job_rank(r), message::probe, id_, packer{}.number(probe_));
        }
        return judge(now);
      case failure::kind::peer_lost:
        inquiry_ = inquiry{std::move(why), entered, now + close_patience};
        return judge(now);
      default: return fail(std::move(why));
    }
  }

  void answer(rank_t rank, std::uint64_t probe, std::uint64_t entered, std::uint64_t finished, steady::time_point now) {
    if (!inquiry_ || probe != probe_) return;
    state_of(rank).progress = {entered, finished, true};
    judge(now);
  }

  /// The member has destroyed its group.
  void leave(rank_t rank, std::uint64_t finished, steady::time_point now) {
    auto& state = state_of(rank);
    if (state.left || state.lost) return;
    state.left = true;
    state.finished = finished;
    for (rank_t r = 0; r < size(); ++r)
      if (r != rank) tell(r, message::departed, packer{}.number(rank).number(finished));
    settle_round();
    judge(now);
  }

  /// The member's process has died or was cut off.
  void lose(rank_t rank, std::string what) {
    auto& state = state_of(rank);
    if (state.left || state.lost) return;
    state.lost = true;
    fail({failure::kind::peer_lost, rank, text_of({"rank ", rank, " ", what})});
  }

  void fail(failure why) {
    if (decided()) return;
    verdict_ = std::move(why);
    inquiry_.reset();
    for (rank_t r = 0; r < size(); ++r) tell(r, message::verdict, packed_verdict());
  }

  steady::time_point next_deadline() const noexcept { return inquiry_ ? inquiry_->until : steady::time_point::max(); }
  void expire(steady::time_point now) { judge(now); }

 private:
  struct progress_report {
    std::uint64_t entered = 0, finished = 0;
    bool known = false;
  };
  struct member {
    bool opened = false, left = false, lost = false;
    std::uint64_t finished = 0;  // when it left
    std::optional<std::string> blob;
    progress_report progress;
  };
  struct inquiry {
    failure why;
    std::uint64_t entered;
    steady::time_point until;
  };

  int size() const noexcept { return static_cast<int>(members_.size()); }
  member& state_of(rank_t r) noexcept { return states_[static_cast<std::size_t>(r)]; }
  rank_t job_rank(rank_t r) const noexcept { return members_[static_cast<std::size_t>(r)]; }
  bool decided() const noexcept { return verdict_.why != failure::kind::none; }
  bool reachable(rank_t r) noexcept { return !state_of(r).left && !state_of(r).lost; }

  void tell(rank_t r, message kind, std::string_view payload) {
    if (state_of(r).opened && reachable(r)) send_(job_rank(r), kind, id_, payload);
  }

  packer packed_verdict() const {
    packer out;
    pack(out, verdict_);
    return out;
  }

  std::vector<rank_t> missing() {
    std::vector<rank_t> late;
    for (rank_t r = 0; r < size(); ++r)
      if (!state_of(r).blob) late.push_back(r);
    return late;
  }

  /// Ends the round if all blobs are here; ends the group if one can never come.
  void settle_round() {
    auto const late = missing();
    if (decided() || late.size() == members_.size()) return;
    for (rank_t const r : late)
      if (state_of(r).left)
        return fail(
            {failure::kind::peer_lost, r, text_of({departure(r), " while others waited for it in exchange ", round_})});
    if (!late.empty()) return;

    std::string all;
    for (auto& state : states_) {
      all += packer{}.text(*state.blob);
      state.blob.reset();
    }
    for (std::size_t at = 0; at < all.size(); at += piece) {
      bool const last = at + piece >= all.size();
      packer part;
      part.number(round_).number(static_cast<std::uint8_t>(last)).raw(std::string_view(all).substr(at, piece));
      for (rank_t r = 0; r < size(); ++r) tell(r, message::gathered, part);
    }
    ++round_;
  }

  std::string departure(rank_t r) {
    return text_of({"rank ", r, " has left the group after call ", state_of(r).finished});
  }

  /// Issues the verdict of the running inquiry as soon as nothing more can be learnt.
  void judge(steady::time_point now) {
    if (!inquiry_ || decided()) return;
    auto& why = inquiry_->why;
    for (rank_t r = 0; r < size(); ++r)
      if (state_of(r).left && (r == why.rank || state_of(r).finished < inquiry_->entered))
        return fail({failure::kind::peer_lost, r, text_of({departure(r), " while others waited for it: ", why.what})});
    bool const over = now >= inquiry_->until;
    if (why.why == failure::kind::peer_lost) {
      if (over) fail(std::move(why));
      return;
    }
    rank_t silent = nobody, behind = nobody;
    for (rank_t r = size() - 1; r >= 0; --r) {
      if (!reachable(r)) continue;
      auto const& p = state_of(r).progress;
      if (!p.known)
        silent = r;
      else if (p.entered < inquiry_->entered && (behind == nobody || p.entered <= state_of(behind).progress.entered))
        behind = r;
    }
    if (silent != nobody && !over) return;
    if (silent != nobody)
      return fail({failure::kind::deadline, silent,
                   text_of({why.what, ": rank ", silent, " does not answer: it is stopped or cut off"})});
    if (behind != nobody)
      return fail({failure::kind::deadline, behind,
                   text_of({why.what, ": rank ", behind, " has not entered call ", inquiry_->entered,
                            " (its last finished call is ", state_of(behind).progress.finished, ")"})});
    fail(std::move(why));
  }

  static constexpr std::size_t piece = 256U << 10U;

  std::uint64_t id_;
  std::vector<rank_t> members_;
  send_to send_;
  std::vector<member> states_;
  failure verdict_;
  std::uint64_t round_ = 1;
  std::uint64_t probe_ = 0;
  std::optional<inquiry> inquiry_;
};

}  // namespace rondo::inline v0::detail
