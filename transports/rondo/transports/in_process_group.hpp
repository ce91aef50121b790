#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/group.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// The control plane of ranks that are threads of one process.
class in_process_group final : public group {
 public:
  /// Groups for ranks 0 … size - 1, one for each thread.
  static std::vector<std::shared_ptr<group>> make(int size) {
    auto const common = std::make_shared<hub>(size);
    std::vector<std::shared_ptr<group>> all;
    for (rank_t r = 0; r < size; ++r) all.push_back(std::shared_ptr<group>(new in_process_group(common, r)));
    return all;
  }

  ~in_process_group() override {
    std::scoped_lock const lock(hub_->mutex);
    detail::by_rank(hub_->members, rank()) = {nullptr, finished()};
    hub_->changed.notify_all();
  }

  std::vector<std::string> exchange(std::string_view mine, clock::time_point deadline) override {
    std::unique_lock lock(hub_->mutex);
    std::uint64_t const number = rounds_++;
    round& now = hub_->rounds[number];
    now.blobs.resize(static_cast<std::size_t>(size()));
    detail::by_rank(now.blobs, rank()) = mine;
    ++now.arrived;
    hub_->changed.notify_all();
    hub_->changed.wait_until(lock, deadline,
                             [&] { return now.arrived == size() || hub_->verdict.why != failure::kind::none; });
    if (now.arrived < size()) {
      if (hub_->verdict.why != failure::kind::none) hub_->verdict.raise();
      throw connect_error("only " + std::to_string(now.arrived) + " of " + std::to_string(size()) +
                          " ranks came to an exchange before its deadline: let every rank make the same calls");
    }
    auto const blobs = now.blobs;
    if (++now.fetched == size()) hub_->rounds.erase(number);
    return blobs;
  }

  std::shared_ptr<group> split(int color, int key, clock::time_point deadline) override {
    auto const blobs = exchange(std::to_string(color) + " " + std::to_string(key), deadline);
    std::vector<std::tuple<int, rank_t>> members;  // (key, rank)
    for (rank_t r = 0; r < size(); ++r) {
      std::string const& blob = blobs[static_cast<std::size_t>(r)];
      std::size_t const blank = blob.find(' ');
      if (std::stoi(blob) == color) members.emplace_back(std::stoi(blob.substr(blank)), r);
    }
    if (color < 0) return nullptr;
    std::sort(members.begin(), members.end());
    rank_t mine = 0;
    while (std::get<1>(members[static_cast<std::size_t>(mine)]) != rank()) ++mine;
    std::scoped_lock const lock(hub_->mutex);
    auto& entry = hub_->children[{rounds_, color}];
    if (!entry.first) entry.first = std::make_shared<hub>(static_cast<int>(members.size()));
    auto const common = entry.first;
    if (++entry.second == common->size) hub_->children.erase({rounds_, color});
    return std::shared_ptr<group>(new in_process_group(common, mine));
  }

  void report(failure why) noexcept override {
    std::scoped_lock const lock(hub_->mutex);
    if (hub_->verdict.why == failure::kind::none) {
      if (why.why == failure::kind::deadline) diagnose(why);
      hub_->verdict = std::move(why);
    }
    for (auto const& member : hub_->members)
      if (member.here) member.here->fail(hub_->verdict);
    hub_->changed.notify_all();
  }

  std::optional<std::uint64_t> departed(rank_t rank) const noexcept override {
    std::scoped_lock const lock(hub_->mutex);
    return detail::by_rank(hub_->members, rank).left_after;
  }

 private:
  struct round {
    std::vector<std::string> blobs;
    int arrived = 0, fetched = 0;
  };

  struct member {
    in_process_group* here = nullptr;
    std::optional<std::uint64_t> left_after;
  };

  struct hub {
    explicit hub(int n) : size(n), members(static_cast<std::size_t>(n)) {}

    int size;
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::uint64_t, round> rounds;
    std::map<std::pair<std::uint64_t, int>, std::pair<std::shared_ptr<hub>, int>> children;  // by split and color
    std::vector<member> members;
    failure verdict;
  };

  in_process_group(std::shared_ptr<hub> common, rank_t rank) : group(rank, common->size), hub_(std::move(common)) {
    std::scoped_lock const lock(hub_->mutex);
    detail::by_rank(hub_->members, rank).here = this;
    if (hub_->verdict.why != failure::kind::none) fail(hub_->verdict);
  }

  /// Names the rank that keeps the others waiting, if it can be told.
  void diagnose(failure& why) const {
    for (rank_t r = 0; r < size(); ++r) {
      auto const* const other = detail::by_rank(hub_->members, r).here;
      if (other && other->entered() >= entered()) continue;
      why.rank = r;
      why.what +=
          "; rank " + std::to_string(r) +
          (other ? " has not entered it (its last finished call is number " + std::to_string(other->finished()) + ")"
                 : std::string(" has left"));
      return;
    }
  }

  std::shared_ptr<hub> hub_;
  std::uint64_t rounds_ = 0;
};

}  // namespace rondo::inline v0
