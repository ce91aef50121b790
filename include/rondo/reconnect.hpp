#pragma once

#include <rondo/error.hpp>
#include <rondo/group.hpp>
#include <rondo/transport.hpp>

#include <memory>

namespace rondo::inline v0 {

/// A transport like `x`, with its settings, between the ranks of another group. Every rank of the group must call;
/// blocks until all have. Takes x.reconnect(ranks, deadline) where a transport has that, else X::connect(ranks,
/// deadline).
template <transport X>
X reconnect(X const& x, std::shared_ptr<group> const& ranks, group::clock::time_point deadline) {
  if constexpr (requires { x.reconnect(ranks, deadline); })
    return x.reconnect(ranks, deadline);
  else if constexpr (requires { X::connect(ranks, deadline); })
    return X::connect(ranks, deadline);
  else
    throw invalid_argument("this transport cannot connect other ranks: give it a member reconnect(group, deadline)");
}

}  // namespace rondo::inline v0
