#pragma once

#include <rondo/transport.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <ctime>
#include <poll.h>
#include <span>
#include <vector>

namespace rondo::inline v0 {

/// A transport that can be slept for together with other things: its wait() in two halves around a poll(2).
///
///  - watch(polled): appends what to poll for until a stream of this rank may have moved. Returns for how long that may
///    be relied on; zero if a stream may have moved already.
///  - watched(answers): takes the entries back that the last watch() appended, with what poll(2) said. Must follow each
///    watch().
template <class X>
concept pollable = transport<X> && requires(X x, std::vector<pollfd>& polled, std::span<pollfd const> answers) {
  { x.watch(polled) } -> std::same_as<std::chrono::nanoseconds>;
  { x.watched(answers) } -> std::same_as<void>;
};

namespace detail {

/// What watch() returns where nothing limits the sleep.
inline constexpr std::chrono::nanoseconds any_time = std::chrono::nanoseconds::max();

/// Sleeps until one of the entries is ready, or `patience` is over.
inline void poll_until_ready(std::vector<pollfd>& polled, std::chrono::nanoseconds patience) noexcept {
  auto const limit = std::max(patience, std::chrono::nanoseconds(0));
  auto const seconds = std::chrono::floor<std::chrono::seconds>(limit);
  timespec const timeout{static_cast<std::time_t>(seconds.count()), static_cast<long>((limit - seconds).count())};
  if (::ppoll(polled.data(), polled.size(), &timeout, nullptr) > 0) return;
  for (auto& p : polled) p.revents = 0;
}

}  // namespace detail

}  // namespace rondo::inline v0
