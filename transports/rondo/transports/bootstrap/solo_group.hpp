#pragma once

#include <rondo/group.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// The group of one rank: no socket, no thread, nothing to wait for.
class solo_group final : public group {
 public:
  solo_group() noexcept : group(0, 1) {}

  std::vector<std::string> exchange(std::string_view mine, clock::time_point) override {
    if (failed()) verdict().raise();
    return {std::string(mine)};
  }
  std::shared_ptr<group> split(int color, int, clock::time_point) override {
    if (failed()) verdict().raise();
    return color < 0 ? nullptr : std::make_shared<solo_group>();
  }
  void report(failure why) noexcept override {
    if (why.why != failure::kind::none) fail(std::move(why));
  }
  std::optional<std::uint64_t> departed(rank_t) const noexcept override { return {}; }
};

}  // namespace rondo::inline v0
