#pragma once

#include <rondo/algorithm.hpp>
#include <rondo/error.hpp>
#include <rondo/group.hpp>
#include <rondo/policy.hpp>
#include <rondo/run/survey.hpp>
#include <rondo/select.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rondo::inline v0::run {

/// The policy given, else the one that RONDO_POLICY names, else none. What is wrong with the file becomes the verdict
/// of all ranks: the others would wait for this one.
inline std::shared_ptr<policy const> policy_or_environment(group& g, std::shared_ptr<policy const> given) {
  char const* const path = given ? nullptr : std::getenv("RONDO_POLICY");
  if (!path || !*path) return given;
  try {
    return std::make_shared<policy const>(policy::load(path));
  } catch (error const& e) {
    g.report({failure::kind::other, g.rank(), std::string(e.sentence())});
    throw;
  }
}

/// What `automatic` means to the calls of one communicator: the lines of its policy, else what select() says, which is
/// asked once for each class of sizes, because asking costs more than a small message. Not before a call needs it: a
/// program whose calls all name their algorithm then contains no model.
class choices {
 public:
  choices(int ranks, surroundings const& around, std::string_view transport, std::shared_ptr<policy const> measured)
      : transport_(transport), policy_(std::move(measured)) {
    place_.ranks = ranks;
    place_.turns = around.turns;
    place_.link = around.hosts > 1 ? link_of(transport) : link_inside(transport);
    place_.link_inside = link_inside(transport);
    auto const& hosts = around.shape.hosts;
    place_.hosts = static_cast<int>(hosts.size());
    place_.most_on_host = *std::max_element(hosts.begin(), hosts.end());
    if (policy_)
      for (std::size_t c = 1; c < collectives; ++c)
        lines_[c] = policy_->lines_for(static_cast<collective>(c), transport, ranks);
  }

  /// What all calls have in common.
  situation const& place() const noexcept { return place_; }

  std::string const& transport() const noexcept { return transport_; }
  std::shared_ptr<policy const> const& measured() const noexcept { return policy_; }

  algorithm of(situation const& s) const noexcept {
    auto const what = static_cast<std::size_t>(s.collective);
    if (what >= collectives) return algorithm::direct;  // a message has one way
    if (!lines_[what].empty())
      if (auto const* const l = line_for(lines_[what], s.bytes); l && admits(s, l->algorithm)) return l->algorithm;
    if (s.shared_memory && s.collective == collective::all_reduce) return algorithm::direct;
    std::size_t const mode = reduces(s.collective) ? std::size_t{s.keep_order} + 2 * std::size_t{s.ordered} : 0;
    auto const size = std::min<std::size_t>(static_cast<std::size_t>(std::bit_width(s.bytes)), classes - 1);
    std::atomic_ref const known(table_[what][mode][size]);
    if (auto const a = known.load(std::memory_order_relaxed); a != algorithm::automatic) [[likely]]
      return a;
    auto const a = ask(s.collective, mode, size);
    known.store(a, std::memory_order_relaxed);  // by whichever thread: all find the same
    return a;
  }

 private:
  /// The answer of select() for a class of sizes.
  [[gnu::cold]] algorithm ask(collective what, std::size_t mode, std::size_t size) const noexcept {
    situation s = place_;
    s.collective = what;
    s.bytes = size > 0 ? std::size_t{1} << (size - 1) : 0;
    s.keep_order = (mode & 1) != 0;
    s.ordered = (mode & 2) != 0;
    return select(s);
  }

  static constexpr std::size_t collectives = static_cast<std::size_t>(collective::send_receive);
  static constexpr std::size_t modes = 4;     // keep_order and ordered
  static constexpr std::size_t classes = 41;  // of sizes; beyond 2^39 bytes nothing changes

  static constexpr bool reduces(collective c) noexcept {
    return c == collective::all_reduce || c == collective::reduce_scatter || c == collective::reduce;
  }

  situation place_{};
  std::string transport_;
  std::shared_ptr<policy const> policy_;
  std::array<std::span<policy::line const>, collectives> lines_{};
  mutable std::array<std::array<std::array<algorithm, classes>, modes>, collectives> table_{};  // automatic: not asked
};

}  // namespace rondo::inline v0::run
