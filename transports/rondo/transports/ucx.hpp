#pragma once

#include <rondo/detail/announce.hpp>
#include <rondo/detail/by_rank.hpp>
#include <rondo/group.hpp>
#include <rondo/pollable.hpp>
#include <rondo/transports/ucx/mesh.hpp>
#include <rondo/transports/ucx/options.hpp>
#include <rondo/transports/ucx/wiring.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <poll.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// Ranks connected by UCX, each with each, over whatever network UCX finds: InfiniBand, RoCE, TCP, … Models transport;
/// buffers must be memory of the host. Needs UCX 1.13 or later, and the library must not be older than the headers.
///
/// UCX reads its environment variables (UCX_TLS, UCX_NET_DEVICES, …), which must be the same on every rank. Unless they
/// say otherwise, connections are looked after every second, and no message waits for the help of its sender.
///
/// Bytes that write() has accepted reach a peer that takes them within a tenth of a second even if this object is
/// destroyed right after. While a peer does not look the destructor takes 0.3 s, and a second at most. In a forked
/// child an inherited object can only be destroyed, which the parent does not notice.
class ucx {
 public:
  static constexpr std::string_view name = "ucx";

  /// Connects all ranks of the group with each other. Every rank must call; all of them succeed or throw connect_error,
  /// which names a rank that runs another UCX or has other settings, or a pair that could not be joined. Blocks until
  /// `deadline` at the most.
  static ucx connect(std::shared_ptr<group> const& ranks, ucx_options const& options = {},
                     group::clock::time_point deadline = group::clock::now() + std::chrono::minutes(5)) {
    mesh_pointer mesh;
    auto const open = [&] {
      mesh.reset(new detail::ucx_mesh(ranks->rank(), ranks->size(), options));
      return mesh->wiring().encode();
    };
    auto const wirings = read(detail::announce(*ranks, "use UCX", open, deadline));
    auto const now = group::clock::now();
    auto const problem = mesh->connect(wirings, *ranks, now + (deadline - now) / 4 * 3);
    auto const outcomes = mesh->exchange(*ranks, problem, deadline);
    for (rank_t q = 0; q < ranks->size(); ++q)
      if (auto const& text = detail::by_rank(outcomes, q); !text.empty()) throw connect_error(text, q);
    return ucx(std::move(mesh), options);
  }

  /// connect() with the options of this one.
  ucx reconnect(std::shared_ptr<group> const& ranks, group::clock::time_point deadline) const {
    return connect(ranks, options_, deadline);
  }

  rank_t rank() const noexcept { return mesh_->rank(); }
  int size() const noexcept { return mesh_->size(); }

  std::size_t write(rank_t peer, std::span<std::byte const> bytes, bool more) {
    return mesh_->write(peer, bytes, more);
  }
  std::span<std::byte const> readable(rank_t peer, std::size_t need) { return mesh_->readable(peer, need); }
  void consume(rank_t peer, std::size_t n) noexcept { mesh_->consume(peer, n); }
  std::size_t read(rank_t peer, std::span<std::byte> bytes) { return mesh_->read(peer, bytes); }

  /// Also sends what writes with `more` have held back.
  void wait(std::chrono::nanoseconds patience) { mesh_->wait(patience); }
  std::chrono::nanoseconds watch(std::vector<pollfd>& polled) { return mesh_->watch(polled); }
  void watched(std::span<pollfd const> answers) noexcept { mesh_->watched(answers); }

  /// Some slots at a time.
  std::size_t piece_bytes() const noexcept { return std::max(options_.slot_bytes, std::size_t{256} << 10); }

 private:
  using mesh_pointer = std::unique_ptr<detail::ucx_mesh, detail::ucx_mesh_deleter>;

  ucx(mesh_pointer mesh, ucx_options const& options) : mesh_(std::move(mesh)), options_(options) {}

  static std::vector<detail::ucx_wiring> read(std::vector<std::string> const& texts) {
    std::vector<detail::ucx_wiring> wirings;
    for (rank_t q = 0; auto const& text : texts) {
      wirings.push_back(detail::ucx_wiring::decode(text, q));
      wirings.back().expect_like(wirings.front(), q);
      ++q;
    }
    return wirings;
  }

  mesh_pointer mesh_;
  ucx_options options_;
};

static_assert(pollable<ucx>);

}  // namespace rondo::inline v0
