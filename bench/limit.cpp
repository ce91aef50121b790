#include "limit.hpp"

#include "addressable_probe.hpp"
#include "pattern.hpp"
#include "statistics.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <functional>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <thread>

namespace rondo::bench {
namespace {

using clock = std::chrono::steady_clock;
constexpr double budget_s = 0.04;

double seconds_since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

/// The median over repetitions of the slowest rank's time of `timed`, in microseconds.
double repeat(member& me, std::function<void(int)> const& before, std::function<void()> const& timed,
              std::function<void()> const& after) {
  std::vector<double> samples;
  auto const whole = clock::now();
  int repetitions = 3;
  for (int i = 0; i < repetitions; ++i) {
    before(i);
    me.together.barrier();
    auto const start = clock::now();
    timed();
    samples.push_back(seconds_since(start) * 1e6);
    after();
    if (i == 1)
      repetitions = static_cast<int>(me.together.agree(iterations_for(budget_s, seconds_since(whole) / 2, 3, 400)));
  }
  me.together.barrier();
  return summarise(slowest(me.together.gather(samples), samples.size())).p50;
}

void pull(shared_buffers const& all, std::vector<origin> const& wanted, int ranks, float* out) {
  for (auto const& w : wanted) {
    if (w.source != origin::everybody || ranks == 1)
      std::memcpy(out + w.at, all.in(std::max(w.source, 0)) + w.offset, w.count * sizeof(float));
    else
      pull_sums(all, ranks, w.offset, w.count, out + w.at);
  }
}

double addressable_limit(member& me, collective what, std::size_t bytes, int root) {
  shared_buffers const all(me.probe.memory, me.size());
  auto const count = bytes / sizeof(float);
  auto const mine = shape_of(what, count, me.size(), me.rank(), root);
  if (std::max(mine.total, mine.in) > all.capacity()) return not_measured;
  auto const wanted = origins(what, mine, me.size(), me.rank(), root);
  auto* const out = all.out(me.rank());
  volatile std::uint64_t read = 0;

  auto const rewrite = [&](int i) { std::fill_n(all.in(me.rank()), mine.in, static_cast<float>(me.rank() + i % 7)); };
  auto const consume = [&] { read = hash_bytes(std::as_bytes(std::span(out, mine.out))); };
  auto const timed = [&](auto&& work) { return repeat(me, rewrite, work, consume); };

  double best = timed([&] {
    me.together.barrier();
    pull(all, wanted, me.size(), out);
  });
  if (what == collective::all_reduce && me.size() > 1)
    for (bool const non_temporal : {false, true})
      best = std::min(best, timed([&] {
                        push_sums(all, me.rank(), me.size(), count, non_temporal);
                        me.together.barrier();
                      }));
  return best;
}

/// Sends and receives the given number of bytes at once.
void exchange(member const& me, std::size_t sending, std::size_t receiving, std::vector<std::byte>& out,
              std::vector<std::byte>& in) {
  auto const give_up = clock::now() + std::chrono::seconds(60);
  auto idle_since = clock::now();
  auto const moved = [](ssize_t n) {
    if (n > 0) return static_cast<std::size_t>(n);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return std::size_t{0};
    throw world_error("a socket of the TCP probe was closed by its peer.");
  };
  while (sending + receiving > 0) {
    std::size_t progress = 0;
    if (sending > 0) {
      auto const n = moved(::send(me.probe.to_next, out.data(), std::min(sending, out.size()), MSG_NOSIGNAL));
      sending -= n;
      progress += n;
    }
    if (receiving > 0) {
      auto const n = moved(::recv(me.probe.from_previous, in.data(), std::min(receiving, in.size()), 0));
      receiving -= n;
      progress += n;
    }
    if (progress > 0) {
      idle_since = clock::now();
      continue;
    }
    // A wake-up costs more than a small message: who waits polls for a while first, where it has a core for that.
    if (clock::now() - idle_since < me.probe.spin) continue;
    if (clock::now() > give_up) throw world_error("the TCP probe made no progress for 60 s.");
    pollfd wait[2]{{me.probe.to_next, POLLOUT, 0}, {me.probe.from_previous, POLLIN, 0}};
    if (sending == 0) wait[0].fd = -1;
    if (receiving == 0) wait[1].fd = -1;
    ::poll(wait, 2, 100);
  }
}

double tcp_limit(member& me, collective what, std::size_t bytes, int root) {
  auto const p = me.size();
  auto const previous = (me.rank() + p - 1) % p;
  auto const sending = std::max<std::size_t>(1, link_bytes(what, bytes, p, me.rank(), root));
  auto const receiving = std::max<std::size_t>(1, link_bytes(what, bytes, p, previous, root));
  constexpr std::size_t window = 256 * 1024;
  std::vector<std::byte> out(std::min(sending, window)), in(std::min(receiving, window));
  return repeat(
      me, [&](int i) { std::fill(out.begin(), out.end(), static_cast<std::byte>(i)); },
      [&] { exchange(me, sending, receiving, out, in); }, [] {});
}

double ping_pong(int here, int there) {
  struct alignas(128) line {
    std::atomic<int> value{0};
  };
  line ping, pong;
  constexpr int batches = 31, trips = 300;
  auto const wait_for = [](std::atomic<int>& flag, int value) {
    for (int turns = 1; flag.load(std::memory_order_acquire) != value; ++turns)
      if (turns % 100'000 == 0) ::sched_yield();
  };
  std::thread echo([&] {
    pin_to(there);
    for (int i = 1; i <= batches * trips; ++i) {
      wait_for(ping.value, i);
      pong.value.store(i, std::memory_order_release);
    }
  });
  std::vector<double> samples;
  std::thread call([&] {
    pin_to(here);
    for (int b = 0, i = 1; b < batches; ++b) {
      auto const start = clock::now();
      for (int t = 0; t < trips; ++t, ++i) {
        ping.value.store(i, std::memory_order_release);
        wait_for(pong.value, i);
      }
      samples.push_back(seconds_since(start) / trips * 1e9);
    }
  });
  call.join();
  echo.join();
  return summarise(samples).p50;
}

}  // namespace

double limit_us(member& me, collective what, std::size_t bytes, int root) {
  if (me.probe.to_next >= 0) return tcp_limit(me, what, bytes, root);
  if (!me.probe.memory.empty()) return addressable_limit(me, what, bytes, root);
  return not_measured;
}

double flag_round_trip_ns(std::vector<int> const& cores) {
  return cores.size() < 2 ? not_measured : ping_pong(cores[0], cores[1]);
}

}  // namespace rondo::bench
