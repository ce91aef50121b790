#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::inline v0::detail {

/// Names that a user writes to choose or to exclude, in the grammar of NCCL_SOCKET_IFNAME.
///
///     a,b    what starts with a or b
///     =a,b   exactly these
///     ^a,b   all but what starts so; ^=a,b all but exactly these
struct name_list {
  bool excludes = false;
  bool exact = false;
  std::vector<std::string> names;

  name_list() = default;
  explicit name_list(std::string_view text) {
    auto const skip = [&](char c) { return text.starts_with(c) && (text.remove_prefix(1), true); };
    excludes = skip('^');
    exact = skip('=');
    while (!text.empty()) {
      auto const name = text.substr(0, text.find(','));
      if (!name.empty()) names.emplace_back(name);
      text.remove_prefix(std::min(name.size() + 1, text.size()));
    }
  }

  /// Is `name` what `listed`, an entry, stands for?
  bool stands_for(std::string_view listed, std::string_view name) const noexcept {
    return exact ? name == listed : name.starts_with(listed);
  }

  bool accepts(std::string_view name) const noexcept {
    auto const named = [&](std::string_view listed) { return stands_for(listed, name); };
    return std::any_of(names.begin(), names.end(), named) != excludes;
  }
};

}  // namespace rondo::inline v0::detail
