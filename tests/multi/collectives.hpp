#pragma once

#include <rondo/communicator.hpp>
#include <rondo/transports/any_transport.hpp>

#include <array>
#include <barrier>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

/// What the tests of collectives share: ranks as threads over any transport, buffers between guards, and the calls of
/// one communicator type, which are compiled once (collectives_*_calls.cpp) and not in every test.
namespace collectives_test {

using namespace rondo;

using comm = communicator<any_transport>;

/// Over multi two ranks after the other play that they share a host. Over devices each has one, of a runtime that the
/// processor plays, and bytes lie there or in memory of the host by chance.
enum class medium { in_process, shm, tcp, multi, devices };
inline constexpr std::array media{medium::in_process, medium::shm, medium::tcp};
std::string name_of(medium);

inline communicator_options const patient{.deadline = std::chrono::seconds(20)};

/// `n` ranks, a thread each, with a communicator that stays.
class crew {
 public:
  crew(medium, int n, communicator_options const& = patient);
  ~crew();

  int size() const noexcept { return size_; }

  /// Runs body(communicator) on all ranks to its end. What one throws is a failure of the test.
  void run(std::function<void(comm&)> const& body);

 private:
  void serve(medium, std::shared_ptr<group>, communicator_options const&);

  int size_;
  std::function<void(comm&)> const* body_ = nullptr;  // nullptr: the end
  std::barrier<> begin_, end_;
  std::vector<std::thread> threads_;
};

/// The same for one body.
void on_ranks(medium, int n, std::function<void(comm&)> const& body, communicator_options const& = patient);

/// Every algorithm that offers the collective to `n` ranks there.
inline std::vector<algorithm> algorithms_for(collective what, int n, medium where = medium::in_process) {
  std::vector<algorithm> all;
  bool const shared = where != medium::tcp && where != medium::devices && (where != medium::multi || n <= 2);
  for (auto const& [a, name] : detail::algorithm_names)
    if (a != algorithm::automatic && supports(a, what, n, shared)) all.push_back(a);
  return all;
}

/// A well mixed number for a place in a buffer.
constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x + 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

/// `count` elements, `shift` bytes off their alignment, between guards that nobody may touch.
template <class T>
class guarded {
 public:
  explicit guarded(std::size_t count, std::size_t shift = 0)
      : bytes_(2 * guard + shift + count * sizeof(T)), begin_(guard + shift), count_(count) {
    each_guard([this](std::size_t i) { bytes_[i] = canary(i); });
  }

  std::span<T> all() noexcept { return {reinterpret_cast<T*>(bytes_.data() + begin_), count_}; }
  std::span<T const> all() const noexcept { return {reinterpret_cast<T const*>(bytes_.data() + begin_), count_}; }
  std::span<T> part(std::size_t first, std::size_t count) noexcept { return all().subspan(first, count); }

  T operator[](std::size_t i) const noexcept {
    T value;
    std::memcpy(&value, bytes_.data() + begin_ + i * sizeof(T), sizeof(T));
    return value;
  }

  template <class F>
  void fill(F&& value_of) {
    for (std::size_t i = 0; i < count_; ++i) {
      T const value = value_of(i);
      std::memcpy(bytes_.data() + begin_ + i * sizeof(T), &value, sizeof(T));
    }
  }

  /// How many elements differ from what they should be in any bit, or whether the guards were touched, in words; empty
  /// if all is well.
  template <class F>
  std::string wrong(F&& value_of) const {
    std::size_t differ = 0, first = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      T const value = value_of(i);
      if (std::memcmp(bytes_.data() + begin_ + i * sizeof(T), &value, sizeof(T)) != 0 && differ++ == 0) first = i;
    }
    if (differ != 0) return std::to_string(differ) + " elements are wrong, first " + std::to_string(first);
    return intact() ? "" : "the guards were overwritten";
  }

  bool intact() const noexcept {
    bool all = true;
    each_guard([&](std::size_t i) { all = all && bytes_[i] == canary(i); });
    return all;
  }

  bool same_bits(guarded const& other) const noexcept {
    return count_ == other.count_ &&
           std::memcmp(bytes_.data() + begin_, other.bytes_.data() + other.begin_, count_ * sizeof(T)) == 0;
  }

 private:
  static constexpr std::size_t guard = 128;
  template <class F>
  void each_guard(F&& f) const {
    for (std::size_t i = 0; i < begin_; ++i) f(i);
    for (std::size_t i = begin_ + count_ * sizeof(T); i < bytes_.size(); ++i) f(i);
  }
  static std::byte canary(std::size_t i) noexcept { return static_cast<std::byte>(i * 37 + 11); }

  std::vector<std::byte> bytes_;
  std::size_t begin_, count_;
};

/// The map x -> scale * x + offset, and how many maps it is made of: 12 bytes, whose composition does not commute.
struct affine {
  std::uint32_t scale, offset, parts;

  friend bool operator==(affine const&, affine const&) = default;
  friend affine operator+(affine const& a, affine const& b) noexcept {
    return {a.scale + b.scale, a.offset + b.offset, a.parts + b.parts};
  }
  friend bool operator<(affine const& a, affine const& b) noexcept { return a.scale < b.scale; }
};
static_assert(sizeof(affine) == 12);

/// First the map of the lower ranks, then that of the higher ones.
struct composition {
  affine operator()(affine const& a, affine const& b) const noexcept {
    return {a.scale * b.scale, b.scale * a.offset + b.offset, a.parts + b.parts};
  }
};

/// An operation of a user that commutes: the greatest of the values below 1, else the greatest of all.
struct small_first {
  static constexpr bool commutative = true;

  template <class T>
  T operator()(T a, T b) const noexcept {
    bool const a_small = a < T(1.0F), b_small = b < T(1.0F);
    if (a_small != b_small) return a_small ? a : b;
    return a < b ? b : a;
  }
};

using counts = std::span<std::size_t const>;

// Calls of communicator, by plain functions. Empty `counts` means equal blocks.

template <class T, class Op>
void all_reduce(comm&, std::span<T const> in, std::span<T> out, Op const&, call_options const& = {});
template <class T, class Op>
work start_all_reduce(comm&, std::span<T const> in, std::span<T> out, Op const&, call_options const& = {});
template <class T, class Op>
void reduce(comm&, std::span<T const> in, std::span<T> out, Op const&, rank_t root, call_options const& = {});
template <class T, class Op>
work start_reduce(comm&, std::span<T const> in, std::span<T> out, Op const&, rank_t root, call_options const& = {});
template <class T, class Op>
void reduce_scatter(comm&, std::span<T const> in, std::span<T> out, counts, Op const&, call_options const& = {});
template <class T, class Op>
work start_reduce_scatter(comm&, std::span<T const> in, std::span<T> out, Op const&, call_options const& = {});

template <class T>
void all_gather(comm&, std::span<T const> in, std::span<T> out, counts = {}, call_options const& = {});
template <class T>
work start_all_gather(comm&, std::span<T const> in, std::span<T> out, call_options const& = {});
template <class T>
void broadcast(comm&, std::span<T> data, rank_t root, call_options const& = {});
template <class T>
work start_broadcast(comm&, std::span<T> data, rank_t root, call_options const& = {});
template <class T>
void all_to_all(comm&, std::span<T const> in, counts to, std::span<T> out, counts from, call_options const& = {});
template <class T>
work start_all_to_all(comm&, std::span<T const> in, std::span<T> out, call_options const& = {});
template <class T>
void gather(comm&, std::span<T const> in, std::span<T> out, rank_t root, call_options const& = {});
template <class T>
work start_gather(comm&, std::span<T const> in, std::span<T> out, rank_t root, call_options const& = {});
template <class T>
void scatter(comm&, std::span<T const> in, std::span<T> out, rank_t root, call_options const& = {});
template <class T>
work start_scatter(comm&, std::span<T const> in, std::span<T> out, rank_t root, call_options const& = {});
template <class T>
void send(comm&, std::span<T const> data, rank_t to, call_options const& = {});
template <class T>
void receive(comm&, std::span<T> data, rank_t from, call_options const& = {});
template <class T>
work start_send(comm&, std::span<T const> data, rank_t to, call_options const& = {});
template <class T>
work start_receive(comm&, std::span<T> data, rank_t from, call_options const& = {});

void barrier(comm&, call_options const& = {});
work start_barrier(comm&, call_options const& = {});

/// The operations that every type is reduced with.
template <class T>
using factor_of = std::conditional_t<std::is_integral_v<T>, T, float>;

}  // namespace collectives_test
