#pragma once

#include <rondo/error.hpp>
#include <rondo/transports/ucx/options.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// What a rank tells the others before they connect, as text:
///
///     release slot_bytes window number-of-settings
///     UCX_NAME=value                                  one line for each setting, by name
///     address                                         all that follows
///
struct ucx_wiring {
  std::string release;
  ucx_options options;
  std::vector<std::string> settings;
  std::string address;

  /// The UCX_ variables of the environment that decide how ranks connect: all but those about what is logged.
  static std::vector<std::string> here() {
    constexpr std::array<std::string_view, 4> harmless{"UCX_LOG_", "UCX_STATS_", "UCX_PROFILE_", "UCX_VFS_"};
    std::vector<std::string> found;
    for (char** variable = environ; variable && *variable; ++variable) {
      std::string_view const text(*variable);
      if (!text.starts_with("UCX_") ||
          std::any_of(harmless.begin(), harmless.end(), [&](auto start) { return text.starts_with(start); }))
        continue;
      std::replace_copy(text.begin(), text.end(), std::back_inserter(found.emplace_back()), '\n', ' ');
    }
    std::sort(found.begin(), found.end(), [](auto const& a, auto const& b) { return name(a) < name(b); });
    return found;
  }

  std::string encode() const {
    std::string text = release + ' ' + std::to_string(options.slot_bytes) + ' ' + std::to_string(options.window) + ' ' +
                       std::to_string(settings.size()) + '\n';
    for (auto const& s : settings) text += s + '\n';
    return text + address;
  }

  /// Throws connect_error, which names the rank, for a text that encode() does not write.
  static ucx_wiring decode(std::string_view text, rank_t from) {
    bool good = true;
    auto const word = [&](char end) {
      auto const n = text.find(end);
      good &= n != text.npos;
      auto const w = text.substr(0, n);
      text.remove_prefix(good ? n + 1 : text.size());
      return w;
    };
    auto const number = [&](char end, auto n) {
      auto const w = word(end);
      auto const [last, code] = std::from_chars(w.data(), w.data() + w.size(), n);
      good &= code == std::errc{} && last == w.data() + w.size();
      return n;
    };
    ucx_wiring w;
    w.release = word(' ');
    w.options.slot_bytes = number(' ', std::size_t{});
    w.options.window = number(' ', int{});
    for (auto left = number('\n', std::size_t{}); good && left > 0; --left) w.settings.emplace_back(word('\n'));
    w.address = text;
    if (good && !w.address.empty()) return w;
    throw connect_error("rank " + std::to_string(from) +
                            " sent a UCX address that cannot be read; run the same version everywhere",
                        from);
  }

  /// Throws connect_error unless the wiring of `rank` fits that of rank 0: UCX promises no understanding between
  /// releases, and ranks with other settings choose other devices and protocols.
  void expect_like(ucx_wiring const& first, rank_t rank) const {
    auto const who = "rank " + std::to_string(rank);
    if (release != first.release)
      throw connect_error(who + " runs UCX " + release + ", but rank 0 runs UCX " + first.release +
                              ": install the same release everywhere",
                          rank);
    if (options.slot_bytes != first.options.slot_bytes || options.window != first.options.window)
      throw connect_error(who + " has other ucx_options (slot_bytes, window) than rank 0; give every rank the same",
                          rank);
    auto const [mine, theirs] =
        std::mismatch(settings.begin(), settings.end(), first.settings.begin(), first.settings.end());
    if (mine == settings.end() && theirs == first.settings.end()) return;
    // The first name in the alphabet on which they differ may be set on one side only.
    bool const only_mine = theirs == first.settings.end() || (mine != settings.end() && name(*mine) < name(*theirs));
    bool const only_theirs = mine == settings.end() || (theirs != first.settings.end() && name(*theirs) < name(*mine));
    std::string const unset = "no " + std::string(name(only_mine ? *mine : *theirs));
    throw connect_error(who + " has " + (only_theirs ? unset : *mine) + ", but rank 0 has " +
                            (only_mine ? unset : *theirs) + ": give every rank the same UCX_ variables",
                        rank);
  }

 private:
  static std::string_view name(std::string_view setting) noexcept { return setting.substr(0, setting.find('=')); }
};

}  // namespace rondo::inline v0::detail
