#pragma once

#include <rondo/adapters/nccl/boxed_request.hpp>
#include <rondo/adapters/nccl/elements.hpp>
#include <rondo/adapters/nccl/invocation.hpp>
#include <rondo/collectives/all_gather.hpp>
#include <rondo/collectives/all_reduce.hpp>
#include <rondo/collectives/broadcast.hpp>
#include <rondo/collectives/reduce.hpp>
#include <rondo/collectives/reduce_scatter.hpp>
#include <rondo/collectives/send_receive.hpp>
#include <rondo/options.hpp>
#include <rondo/run/dispatcher.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

/// From an invocation, whose types are values, to a request of rondo. One function for each collective, so that a file
/// compiles only those that it calls.
namespace rondo::inline v0::nccl {

template <class T>
std::span<T const> source(invocation const& i, std::size_t count) noexcept {
  return {static_cast<T const*>(i.in), count};
}
template <class T>
std::span<T> target(invocation const& i, std::size_t count) noexcept {
  return {static_cast<T*>(i.out), count};
}

/// A broadcast of rondo is in place.
inline void bring_to_output(invocation const& i) {
  auto const from = source<std::byte>(i, i.bytes());
  auto const to = target<std::byte>(i, i.bytes());
  collectives::check_apart("ncclBroadcast", from, to);
  collectives::copy_bytes(to.data(), from.data(), to.size());
}

template <collective C, class T, class Op>
auto reduction_of(invocation const& i, Op const& op) noexcept {
  auto const all = i.count * static_cast<std::size_t>(i.on->size());
  if constexpr (C == collective::all_reduce)
    return collectives::all_reduce<T, Op>{{}, source<T>(i, i.count), target<T>(i, i.count), op};
  else if constexpr (C == collective::reduce)
    return collectives::reduce<T, Op>{{i.peer}, source<T>(i, i.count), target<T>(i, i.at_root() ? i.count : 0), op};
  else
    return collectives::reduce_scatter<T, Op>{
        {}, source<T>(i, all), target<T>(i, i.count), collectives::blocks(i.count), op};
}

template <collective C>
boxed_request<C> request_of(invocation const& i) {
  return with_type(i.type, [&]<class T>(std::type_identity<T>) {
    if constexpr (C == collective::all_gather) {
      auto const all = i.count * static_cast<std::size_t>(i.on->size());
      return boxed_request<C>(
          collectives::all_gather<T>{{}, source<T>(i, i.count), target<T>(i, all), collectives::blocks(i.count)});
    } else if constexpr (C == collective::broadcast) {
      return boxed_request<C>(collectives::broadcast<T>{{i.peer}, target<T>(i, i.count)});
    } else if constexpr (C == collective::send_receive) {
      if (i.sends) return boxed_request<C>(collectives::message<T const>{{}, source<T>(i, i.count), i.peer});
      return boxed_request<C>(collectives::message<T>{{}, target<T>(i, i.count), i.peer});
    } else {
      return i.op.template with<T>([&](auto const& op) { return boxed_request<C>(reduction_of<C, T>(i, op)); });
    }
  });
}

/// Where the dispatcher finds the schedule of a collective.
template <collective C>
using choice_of = std::conditional_t<C == collective::send_receive, run::single_message, automatic>;

template <collective C>
run::single_message ends_of(invocation const& i) noexcept {
  if (C != collective::send_receive) return {};
  return i.sends ? run::single_message{.to = i.peer} : run::single_message{.from = i.peer};
}

template <collective C>
void run_call(invocation const& i) {
  if (C == collective::broadcast && i.at_root()) bring_to_output(i);
  i.on->calls().template run<choice_of<C>>(request_of<C>(i), {}, ends_of<C>(i));
}

template <collective C>
work start_call(invocation const& i) {
  if (C == collective::broadcast && i.at_root()) bring_to_output(i);
  return i.on->calls().template start<choice_of<C>>(request_of<C>(i), {}, ends_of<C>(i));
}

}  // namespace rondo::inline v0::nccl
