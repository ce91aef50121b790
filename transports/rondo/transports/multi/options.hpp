#pragma once

#include <rondo/detail/environment_text.hpp>
#include <rondo/detail/name_list.hpp>
#include <rondo/error.hpp>
#include <rondo/group.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>

namespace rondo::inline v0 {

namespace detail {

template <class X, class Options>
Options connected_with(X (*)(std::shared_ptr<group> const&, Options const&, group::clock::time_point));
template <class X>
std::monostate connected_with(X (*)(std::shared_ptr<group> const&, group::clock::time_point));

/// What X::connect takes between a group and a deadline.
template <class X>
using connect_options = decltype(connected_with<X>(&X::connect));

}  // namespace detail

/// How ranks are connected by several transports. The ranks need not agree: a pair uses what both ends permit.
template <class... Xs>
struct multi_options {
  /// The transports that this rank may use, by name: "shm,tcp", or "^verbs" for all but these. Empty: what the
  /// environment variable RONDO_TRANSPORTS says in the same way, else all.
  std::string transports{};

  /// Two ranks share memory only if they give the same text here. Empty: what RONDO_HOSTID says. For tests that play
  /// several hosts on one; where ranks really are is proved anyway.
  std::string host{};

  /// May this rank use the transport of that name to that rank of the group? Empty: yes.
  std::function<bool(std::string_view transport, rank_t peer)> permits{};

  /// The options of each transport, in their order.
  std::tuple<detail::connect_options<Xs>...> each{};
};

namespace detail {

inline std::string text_or_environment(std::string const& text, char const* variable) {
  return text.empty() ? std::string(environment_text::first_of({variable}).text) : text;
}

/// Is `name` among the transports that a text like "shm,tcp" or "^verbs" lists? Throws invalid_argument for one that
/// asks for a transport that is not among `all`: it would silently get another one.
inline bool lists_transport(std::string_view text, std::string_view name, std::span<std::string_view const> all) {
  if (text.empty()) return true;
  name_list list(text);
  list.exact = true;
  for (auto const& word : list.names) {
    if (list.excludes || std::find(all.begin(), all.end(), word) != all.end()) continue;
    std::string names;
    for (auto const n : all) names += (names.empty() ? "" : ", ") + std::string(n);
    throw invalid_argument("the transports \"" + std::string(text) + "\" name " + word + ", but this program has " +
                           names + ": correct RONDO_TRANSPORTS or multi_options::transports");
  }
  return list.accepts(name);
}

}  // namespace detail

}  // namespace rondo::inline v0
