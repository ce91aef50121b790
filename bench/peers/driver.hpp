#pragma once

#include "cores.hpp"
#include "peers/protocol.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <memory>
#include <sched.h>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace rondo::bench::peers {

/// Where a call reads and where it writes; the same for calls in place.
struct place {
  float* in;
  float* out;
};

/// Page-aligned memory of this process, which grows.
class own_buffer {
 public:
  place at_least(std::size_t count) {
    if (count > count_) {
      data_.reset();
      auto const bytes = (count * sizeof(float) + 4095) / 4096 * 4096;
      data_.reset(static_cast<float*>(std::aligned_alloc(4096, bytes)));
      if (!data_) throw std::runtime_error("there is no memory for " + std::to_string(bytes) + " bytes.");
      count_ = count;
    }
    return {data_.get(), data_.get()};
  }

 private:
  struct release {
    void operator()(float* data) const { std::free(data); }
  };
  std::unique_ptr<float, release> data_;
  std::size_t count_ = 0;
};

/// One rank of one system: measures what the command asks for. All that is done around a call is here, the same for
/// every library; between two turns a rank sleeps, and no library is entered.
class driver {
 public:
  /// The last two arguments of the program say where the command listens, and which memory it shares. The library that
  /// is driven must be connected, so that threads of its own are not kept on this thread's core.
  driver(int argc, char** argv, int rank, int ranks, std::string_view name) : rank_(rank), ranks_(ranks) {
    if (argc < 3) throw std::runtime_error("this program is started by 'rondo compare --peers'.");
    map(argv[argc - 1]);
    auto const cores = allowed_cores();
    spins_ = crowded(cores, ranks) ? 16 : 2048;
    if (region_->pin) pin_rank(cores, rank, ranks);
    greet(argv[argc - 2], name);
  }
  ~driver() {
    ::munmap(region_, size_);
    ::close(socket_);
  }
  driver(driver const&) = delete;
  driver& operator=(driver const&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  /// The system's own part of the shared memory.
  std::span<std::byte> shared() const {
    constexpr std::size_t begin = (sizeof(region) + 4095) / 4096 * 4096;
    return {reinterpret_cast<std::byte*>(region_) + begin, size_ - begin};
  }

  /// Returns when every rank has called it. Spins, but hardly where ranks share cores, then yields.
  void barrier() {
    constexpr auto patience = std::chrono::seconds(60);
    region_->ranks[rank_].arrivals.store(++passed_, std::memory_order_release);
    auto const since = clock::now();
    for (int r = 0; r < ranks_; ++r)
      for (unsigned polls = 1; region_->ranks[r].arrivals.load(std::memory_order_acquire) < passed_; ++polls) {
        if (polls % spins_ != 0) {
          relax();
          continue;
        }
        if (clock::now() - since > patience)
          throw std::runtime_error("rank " + std::to_string(r) + " did not come to a barrier: it hangs or has died.");
        ::sched_yield();
      }
  }

  /// Does what the command asks for until it hangs up: place buffers(int series, std::size_t count) says where the
  /// input goes and the output comes from, call(int series, place, std::size_t count) does the all-reduce.
  template <class Buffers, class Call>
  void serve(Buffers&& buffers, Call&& call) {
    turn t;
    while (::recv(socket_, &t, sizeof t, 0) == sizeof t) {
      outcome done{};
      try {
        done.wrong = play(t, buffers, call);
      } catch (std::exception const& e) { std::snprintf(done.trouble, sizeof done.trouble, "%s", e.what()); }
      if (::send(socket_, &done, sizeof done, MSG_NOSIGNAL) < 0 || done.trouble[0] != 0) return;
    }
  }

 private:
  using clock = std::chrono::steady_clock;
  static constexpr std::size_t period = 64;
  using table = std::array<float, period>;

  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  void map(char const* path) {
    int const fd = ::open(path, O_RDWR | O_CLOEXEC);
    auto const end = fd < 0 ? -1 : ::lseek(fd, 0, SEEK_END);
    void* data = MAP_FAILED;
    if (end > 0) {
      size_ = static_cast<std::size_t>(end);
      data = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (fd >= 0) ::close(fd);
    if (data == MAP_FAILED) throw std::runtime_error("the memory of the command cannot be mapped: has it ended?");
    region_ = static_cast<region*>(data);
  }

  void greet(std::string_view address, std::string_view name) {
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    auto const length = std::min(address.size(), sizeof where.sun_path - 1);
    std::memcpy(where.sun_path + 1, address.data(), length);
    socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    auto const bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    greeting hello{rank_, ranks_, {}};
    std::snprintf(hello.name, sizeof hello.name, "%.*s", static_cast<int>(name.size()), name.data());
    if (::connect(socket_, reinterpret_cast<sockaddr const*>(&where), bytes) != 0 ||
        ::send(socket_, &hello, sizeof hello, MSG_NOSIGNAL) < 0)
      throw std::runtime_error("the command cannot be reached: has it ended?");
  }

  /// Small integers: every partial sum is exact, whatever the order.
  static float offset(int rank, std::uint64_t phase) {
    return static_cast<float>(rank + 1 + static_cast<int>(phase % 7));
  }

  static void fill(float* data, std::size_t count, float first) {
    table values;
    for (std::size_t k = 0; k < std::min(period, count); ++k) values[k] = first + static_cast<float>(k);
    for (; count >= period; count -= period, data += period) std::memcpy(data, values.data(), sizeof values);
    std::memcpy(data, values.data(), count * sizeof(float));
  }

  std::uint64_t count_wrong(float const* data, std::size_t count) const {
    float sum = 0;
    for (int r = 0; r < ranks_; ++r) sum += offset(r, phase_);
    table values;
    for (std::size_t k = 0; k < std::min(period, count); ++k)
      values[k] = sum + static_cast<float>(ranks_) * static_cast<float>(k);
    std::uint64_t wrong = 0;
    for (; count >= period; count -= period, data += period) {
      std::uint32_t here = 0;
      for (std::size_t k = 0; k < period; ++k) here += data[k] != values[k] ? 1 : 0;
      wrong += here;
    }
    for (std::size_t k = 0; k < count; ++k) wrong += data[k] != values[k] ? 1 : 0;
    return wrong;
  }

  template <class Buffers, class Call>
  std::uint64_t play(turn const& t, Buffers& buffers, Call& call) {
    auto const count = static_cast<std::size_t>(t.bytes) / sizeof(float);
    place const at = buffers(static_cast<int>(t.series), count);
    std::uint64_t wrong = 0;
    for (int i = -t.warm_up; i < t.timed; ++i) {
      ++phase_;
      fill(at.in, count, offset(rank_, phase_));
      barrier();
      auto const start = clock::now();
      call(static_cast<int>(t.series), at, count);
      auto const end = clock::now();
      barrier();
      wrong += count_wrong(at.out, count);
      if (i >= 0) region_->times_us[rank_][i] = std::chrono::duration<double, std::micro>(end - start).count();
    }
    return wrong;
  }

  int rank_, ranks_;
  unsigned spins_ = 1;
  int socket_ = -1;
  region* region_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t passed_ = 0, phase_ = 0;
};

/// Runs the main function of a driver; an error is one line, and the status 1.
template <class Main>
int guarded(Main&& main) {
  try {
    main();
    return 0;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

}  // namespace rondo::bench::peers
