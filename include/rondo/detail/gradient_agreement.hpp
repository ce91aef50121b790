#pragma once

#include <rondo/communicator.hpp>
#include <rondo/detail/hash.hpp>
#include <rondo/error.hpp>
#include <rondo/gradient/parameter.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rondo::inline v0::detail {

/// The values of all ranks, `mine.size()` of each, by rank. As bytes, so that one collective serves all types.
template <transport X, class T>
std::vector<T> gather_from_all(communicator<X>& comm, std::span<T const> mine) {
  std::vector<T> all(mine.size() * static_cast<std::size_t>(comm.size()));
  comm.all_gather(std::as_bytes(mine), std::as_writable_bytes(std::span(all)));
  return all;
}

inline std::span<std::byte> value_bytes(parameter const& p) noexcept {
  return {static_cast<std::byte*>(p.values), p.count * size_of(p.type)};
}

/// A text that has one size on all ranks.
using fixed_text = std::array<char, 200>;

inline fixed_text to_fixed(std::string_view text) noexcept {
  fixed_text fixed{};
  std::copy_n(text.begin(), std::min(text.size(), fixed.size() - 1), fixed.begin());
  return fixed;
}

/// Throws the same invalid_argument on every rank unless all have the same parameters and settings, of which `digest`
/// is a hash. The sentence names the lowest rank that differs from rank 0, and its first parameter that does.
template <transport X>
void check_agreement(communicator<X>& comm, std::span<parameter const> parameters, std::uint64_t digest) {
  struct opinion {
    std::uint64_t digest, count;
  };
  opinion const mine{digest, parameters.size()};
  auto const all = gather_from_all(comm, std::span(&mine, 1));
  auto const agrees = [&](opinion const& o) { return o.digest == all[0].digest && o.count == all[0].count; };
  auto const odd = std::find_if_not(all.begin(), all.end(), agrees);
  if (odd == all.end()) return;

  auto const name_at = [&](std::size_t id) {
    return to_fixed(id < parameters.size() ? "has parameter " + parameters[id].text() : "has none");
  };
  std::vector<fixed_text> first(all[0].count);
  for (std::size_t id = 0; id < first.size(); ++id) first[id] = name_at(id);
  comm.broadcast(std::as_writable_bytes(std::span(first)), 0);
  struct difference {
    std::uint64_t at;
    fixed_text mine, theirs;
  };
  std::size_t const end = std::max(first.size(), parameters.size());
  std::size_t at = 0;
  auto const theirs = [&](std::size_t id) { return id < first.size() ? first[id] : to_fixed("has none"); };
  while (at < end && name_at(at) == theirs(at)) ++at;
  difference const found{at, name_at(at), theirs(at)};
  auto const differences = gather_from_all(comm, std::span(&found, 1));
  auto const rank = odd - all.begin();
  auto const& d = differences[static_cast<std::size_t>(rank)];
  std::string const who = "rank " + std::to_string(rank);
  if (d.at == std::max(all[0].count, odd->count))
    throw invalid_argument(who + " synchronises with other options than rank 0: give all ranks the same",
                           static_cast<rank_t>(rank));
  throw invalid_argument("in place " + std::to_string(d.at) + " " + who + " " + d.mine.data() + ", but rank 0 " +
                             d.theirs.data() + ": build the same model on every rank",
                         static_cast<rank_t>(rank));
}

/// Throws the same error on every rank unless the values of all parameters are the same bits everywhere; it names the
/// first parameter that differs, and the lowest rank that holds another one than rank 0.
template <transport X>
void check_same_values(communicator<X>& comm, std::span<parameter const> parameters) {
  std::vector<std::uint64_t> mine;
  for (parameter const& p : parameters)
    mine.push_back(hasher().add(std::span<std::byte const>(value_bytes(p))).value());
  auto const all = gather_from_all(comm, std::span<std::uint64_t const>(mine));
  for (std::size_t id = 0; id < mine.size(); ++id)
    for (std::size_t r = 1; r < static_cast<std::size_t>(comm.size()); ++r)
      if (all[r * mine.size() + id] != all[id])
        throw error("rank " + std::to_string(r) + " holds other values of parameter " + parameters[id].text() +
                        " than rank 0: call broadcast_values() first, and change values alike on all ranks",
                    static_cast<rank_t>(r));
}

}  // namespace rondo::inline v0::detail
