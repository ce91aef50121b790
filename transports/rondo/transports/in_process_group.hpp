#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/group.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
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
    auto& rounds = hub_->rounds;
    auto now = std::find_if(rounds.begin(), rounds.end(), [&](round const& r) { return r.number == number; });
    if (now == rounds.end()) now = rounds.insert(now, round(number, size()));
    detail::by_rank(now->blobs, rank()) = mine;
    ++now->arrived;
    hub_->changed.notify_all();
    hub_->changed.wait_until(lock, deadline,
                             [&] { return now->arrived == size() || hub_->verdict.why != failure::kind::none; });
    if (now->arrived < size()) {
      if (hub_->verdict.why != failure::kind::none) hub_->verdict.raise();
      throw connect_error(
          detail::text_of({"only ", now->arrived, " of ", size(),
                           " ranks came to an exchange before its deadline: let every rank make the same calls"}));
    }
    auto const blobs = now->blobs;
    if (++now->fetched == size()) rounds.erase(now);
    return blobs;
  }

  std::shared_ptr<group> split(int color, int key, clock::time_point deadline) override {
    struct {
      int color, key;
    } const mine{color, key};
    auto const blobs = exchange({reinterpret_cast<char const*>(&mine), sizeof mine}, deadline);
    if (color < 0) return nullptr;
    int members = 0;
    rank_t place = 0;  // this rank's among them
    for (rank_t r = 0; r < size(); ++r) {
      auto other = mine;
      std::string const& blob = detail::by_rank(blobs, r);
      std::memcpy(&other, blob.data(), std::min(blob.size(), sizeof other));
      if (other.color != color) continue;
      ++members;
      if (other.key < key || (other.key == key && r < rank())) ++place;
    }
    std::scoped_lock const lock(hub_->mutex);
    auto part = std::find_if(hub_->children.begin(), hub_->children.end(),
                             [&](child const& c) { return c.round == rounds_ && c.color == color; });
    if (part == hub_->children.end())
      part = hub_->children.insert(part, {rounds_, color, std::make_shared<hub>(members), members});
    auto const common = part->common;
    if (--part->missing == 0) hub_->children.erase(part);
    return std::shared_ptr<group>(new in_process_group(common, place));
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
    round(std::uint64_t n, int ranks) : number(n), blobs(static_cast<std::size_t>(ranks)) {}

    std::uint64_t number;
    std::vector<std::string> blobs;
    int arrived = 0, fetched = 0;
  };

  struct hub;

  /// A part of the ranks, by the round in which they split off and their color.
  struct child {
    std::uint64_t round;
    int color;
    std::shared_ptr<hub> common;
    int missing;
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
    std::list<round> rounds;      // that not all ranks have left
    std::vector<child> children;  // that not all of their ranks have come for
    std::vector<member> members;
    failure verdict;
  };

  in_process_group(std::shared_ptr<hub> common, rank_t rank) : group(rank, common->size), hub_(std::move(common)) {
    std::scoped_lock const lock(hub_->mutex);
    detail::by_rank(hub_->members, rank).here = this;
    if (hub_->verdict.why != failure::kind::none) fail(hub_->verdict);
  }

  /// Names the rank that keeps the others waiting, if it can be told.
  [[gnu::cold]] void diagnose(failure& why) const {
    for (rank_t r = 0; r < size(); ++r) {
      auto const* const other = detail::by_rank(hub_->members, r).here;
      if (other && other->entered() >= entered()) continue;
      why.rank = r;
      why.what += detail::text_of({"; rank ", r});
      why.what +=
          other ? detail::text_of({" has not entered it (its last finished call is number ", other->finished(), ")"})
                : detail::text_of({" has left"});
      return;
    }
  }

  std::shared_ptr<hub> hub_;
  std::uint64_t rounds_ = 0;
};

}  // namespace rondo::inline v0
