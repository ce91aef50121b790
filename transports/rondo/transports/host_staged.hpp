#pragma once

#include <rondo/group.hpp>
#include <rondo/pollable.hpp>
#include <rondo/reconnect.hpp>
#include <rondo/transport.hpp>
#include <rondo/transports/cuda_ipc/runtime.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <poll.h>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

template <device_runtime R>
struct host_staged_options {
  R runtime{};
  typename R::stream stream{};  ///< for all copies: what was enqueued there before comes first

  /// Bytes of pinned memory, by which one copy moves at most: while the transport carries what it has accepted, the
  /// next ones are on their way from the device.
  std::size_t piece_bytes = std::size_t{256} << 10;
};

/// Lets a transport take memory of devices, through pinned memory of the host: for GPUs of different hosts, or of one
/// that cannot reach each other. Models transport, and keeps the guarantees of X; a call waits for its copies.
template <transport X, device_runtime R>
class host_staged {
 public:
  using options_type = host_staged_options<R>;

  host_staged(X x, options_type const& options = {})
      : x_(std::move(x)), options_(options),
        pinned_(options.runtime.allocate_pinned(options.piece_bytes),
                [runtime = options.runtime](std::byte* p) { runtime.free_pinned(p); }) {}

  /// X::connect() with its own defaults, and the options.
  static host_staged connect(std::shared_ptr<group> const& ranks, options_type const& options = {},
                             group::clock::time_point deadline = group::clock::now() + std::chrono::minutes(5)) {
    if constexpr (requires { X::connect(ranks, deadline); })
      return host_staged(X::connect(ranks, deadline), options);
    else
      return host_staged(X::connect(ranks, {}, deadline), options);
  }
  host_staged reconnect(std::shared_ptr<group> const& ranks, group::clock::time_point deadline) const {
    return host_staged(rondo::reconnect(x_, ranks, deadline), options_);
  }

  static constexpr std::string_view name = X::name;
  std::string explain(rank_t) const { return std::string(name) + ", through memory of the host"; }
  bool takes_device_memory() const noexcept { return true; }
  std::size_t piece_bytes() const noexcept { return std::max(options_.piece_bytes, rondo::piece_bytes(x_)); }

  rank_t rank() const noexcept { return x_.rank(); }
  int size() const noexcept { return x_.size(); }

  std::size_t write(rank_t peer, std::span<std::byte const> bytes, bool more) {
    if (!options_.runtime.on_device(bytes.data())) return x_.write(peer, bytes, more);
    std::size_t done = 0;
    while (done < bytes.size()) {
      std::size_t const n = std::min(bytes.size() - done, options_.piece_bytes);
      copy(pinned_.get(), bytes.data() + done, n);
      std::size_t const accepted = x_.write(peer, {pinned_.get(), n}, more || done + n < bytes.size());
      done += accepted;
      if (accepted < n) break;
    }
    return done;
  }

  std::span<std::byte const> readable(rank_t peer, std::size_t need) { return x_.readable(peer, need); }
  void consume(rank_t peer, std::size_t n) { x_.consume(peer, n); }

  std::size_t read(rank_t peer, std::span<std::byte> bytes) {
    if (!options_.runtime.on_device(bytes.data())) return x_.read(peer, bytes);
    std::size_t done = 0;
    while (done < bytes.size()) {
      std::size_t const n = x_.read(peer, {pinned_.get(), std::min(bytes.size() - done, options_.piece_bytes)});
      if (n == 0) break;
      copy(bytes.data() + done, pinned_.get(), n);
      done += n;
    }
    return done;
  }

  void wait(std::chrono::nanoseconds patience) { x_.wait(patience); }
  std::chrono::nanoseconds watch(std::vector<pollfd>& polled) requires pollable<X> { return x_.watch(polled); }
  void watched(std::span<pollfd const> answers) requires pollable<X> { x_.watched(answers); }

 private:
  void copy(std::byte* to, std::byte const* from, std::size_t n) {
    options_.runtime.copy(to, from, n, options_.stream);
    options_.runtime.wait(options_.stream);
  }

  X x_;
  options_type options_;
  std::shared_ptr<std::byte> pinned_;
};

}  // namespace rondo::inline v0
