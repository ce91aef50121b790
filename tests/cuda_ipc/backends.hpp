#pragma once

#include "../conformance/ranks.hpp"
#include "worlds.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <gtest/gtest.h>
#include <random>
#include <span>
#include <utility>

/// Backends of the suite of transports.
namespace rondo::testing {

using namespace cuda_ipc_test;

/// What the calls of a test read and write.
enum class buffers { of_the_host, of_the_device, of_either };

/// The transport, called with buffers on the device where it is the device's turn.
template <buffers Which, transport X = transport_type>
class with_buffers {
 public:
  with_buffers(options_type const& o, X x)
      : x_(std::move(x)), buffer_(o.runtime, most), random_(static_cast<unsigned>(x_.rank()) + 1) {}

  rank_t rank() const noexcept { return x_.rank(); }
  int size() const noexcept { return x_.size(); }
  std::size_t write(rank_t peer, std::span<std::byte const> bytes, bool more) {
    if (!on_device()) return x_.write(peer, bytes, more);
    auto const part = bytes.first(std::min(bytes.size(), most));
    buffer_.put(part);
    auto const n = x_.write(peer, buffer_.all().first(part.size()), more || part.size() < bytes.size());
    buffer_.put(bytes_of(part.size()));  // accepted bytes may be overwritten at once
    return n;
  }
  std::span<std::byte const> readable(rank_t peer, std::size_t need) { return x_.readable(peer, need); }
  void consume(rank_t peer, std::size_t n) { x_.consume(peer, n); }
  std::size_t read(rank_t peer, std::span<std::byte> bytes) {
    if (!on_device()) return x_.read(peer, bytes);
    auto const part = bytes.first(std::min(bytes.size(), most));
    auto const n = x_.read(peer, buffer_.all().first(part.size()));
    buffer_.get(part.first(n));
    return n;
  }
  void wait(std::chrono::nanoseconds patience) { x_.wait(patience); }

 private:
  static constexpr std::size_t most = 100'000;

  bool on_device() { return Which == buffers::of_the_device || (Which == buffers::of_either && random_() % 2 == 0); }
  static bytes bytes_of(std::size_t n) { return bytes(n, std::byte{0x77}); }

  X x_;
  device_buffer buffer_;
  std::minstd_rand random_;
};

template <place Where, device_sharing Way, buffers Which>
struct over_devices {
  static constexpr bool notices_departure = false;
  static constexpr std::size_t larger_than_its_buffers = (2 << 20) + 1;  // than the host's ring, too

  template <class Body>
  static void world(int n, Body body) {
    auto const groups = in_process_group::make(n);
    auto const places = places_of(n, Where);
    on_ranks(n, [&](rank_t r) {
      auto o = places[static_cast<std::size_t>(r)];
      o.sharing = Way;
      with_buffers<Which> x(o, transport_type::connect(groups[static_cast<std::size_t>(r)], o));
      body(r, x);
    });
    for (auto const& o : places)
      for (auto const& fault : o.runtime.inside().faults()) ADD_FAILURE() << fault;
  }
};

}  // namespace rondo::testing
