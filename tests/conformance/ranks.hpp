#pragma once

#include <rondo/transport.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <gtest/gtest.h>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

namespace rondo::testing {

using bytes = std::vector<std::byte>;

/// Runs body(rank) on a thread for each of `n` ranks. What one throws is a failure of the test.
inline void on_ranks(int n, std::function<void(rank_t)> const& body) {
  std::vector<std::thread> threads;
  for (rank_t r = 0; r < n; ++r)
    threads.emplace_back([&body, r] {
      try {
        body(r);
      } catch (std::exception const& e) { ADD_FAILURE() << "rank " << r << " threw: " << e.what(); }
    });
  for (auto& t : threads) t.join();
}

/// Keeps a test from hanging: sleeps in the transport, and throws when the test has taken too long.
class patience {
 public:
  template <class X>
  void pause(X& x) const {
    if (clock::now() > end_) throw std::runtime_error("nothing moves any more");
    x.wait(std::chrono::milliseconds(10));
  }

 private:
  using clock = std::chrono::steady_clock;
  clock::time_point end_ = clock::now() + std::chrono::seconds(30);
};

/// Word `i` of an endless stream that never looks like a shifted or repeated copy of itself.
inline std::uint64_t stream_word(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t const x = (i + 1) * 0x9e3779b97f4a7c15u + seed * 0xbf58476d1ce4e5b9u;
  return (x ^ x >> 31) * 0x94d049bb133111ebu;
}

/// Its first `n` bytes.
inline bytes stream(std::uint64_t seed, std::size_t n) {
  bytes b(n);
  for (std::size_t i = 0; i < n; i += sizeof(std::uint64_t)) {
    auto const word = stream_word(seed, i);
    std::memcpy(b.data() + i, &word, std::min(sizeof word, n - i));
  }
  return b;
}

template <transport X>
void send(X& x, rank_t to, std::span<std::byte const> out, bool more = false) {
  patience const p;
  while (!out.empty()) {
    auto const n = x.write(to, out, more);
    out = out.subspan(n);
    if (n == 0) p.pause(x);
  }
}

template <transport X>
bytes receive(X& x, rank_t from, std::size_t n) {
  patience const p;
  bytes in(n);
  for (std::size_t done = 0; done < n;) {
    auto const got = x.read(from, std::span(in).subspan(done));
    done += got;
    if (got == 0) p.pause(x);
  }
  return in;
}

/// Sends `out` to every peer while receiving as much from each.
template <transport X>
std::vector<bytes> exchange(X& x, std::vector<rank_t> const& peers, std::span<std::byte const> out) {
  patience const p;
  std::vector<bytes> in(peers.size(), bytes(out.size()));
  std::vector<std::size_t> sent(peers.size()), received(peers.size());
  for (bool done = false; !done;) {
    bool moved = false;
    done = true;
    for (std::size_t i = 0; i < peers.size(); ++i) {
      auto const w = x.write(peers[i], out.subspan(sent[i]), false);
      auto const r = x.read(peers[i], std::span(in[i]).subspan(received[i]));
      sent[i] += w;
      received[i] += r;
      moved |= w + r != 0;
      done &= sent[i] == out.size() && received[i] == out.size();
    }
    if (!moved && !done) p.pause(x);
  }
  return in;
}

}  // namespace rondo::testing
