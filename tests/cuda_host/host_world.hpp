#pragma once

#include "host_context.hpp"
#include <rondo/cuda/board.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <vector>

namespace cuda_host {

/// A shape with little memory, through whose windows a test passes many times.
inline constexpr rondo::device::arena_shape small_shape{
    .words = 24, .window_bytes = 6144, .tile_packs = 4, .slots = 2, .blocks = 8};

/// `Ranks` ranks whose arenas are in this process. All counters begin shortly before they wrap.
template <int Ranks>
class world {
 public:
  static constexpr int size = Ranks;
  static constexpr rondo::device::flag begin = 0xfffffff0;

  explicit world(grid g = {}, rondo::device::arena_shape shape = small_shape) : grid_(g), shape_(shape) {
    for (int r = 0; r < Ranks; ++r) {
      arenas_.push_back(static_cast<std::byte*>(allocate(shape.bytes(Ranks))));
      start_at(r, begin);
    }
  }

  ~world() {
    for (auto const& [place, bytes] : memory_) ::operator delete (place, std::align_val_t{128});
  }
  world(world const&) = delete;
  world& operator=(world const&) = delete;

  /// Memory that all ranks address, zeroed, until the world ends.
  void* allocate(std::size_t bytes) {
    void* const place = ::operator new (bytes, std::align_val_t{128});
    std::memset(place, 0, bytes);
    memory_.push_back({place, bytes});
    return place;
  }

  rondo::device::link<Ranks> link(int rank) {
    rondo::device::link<Ranks> all{.rank = rank,
                                   .arenas = {},
                                   .shape = shape_,
                                   .report = &reports_[static_cast<std::size_t>(rank)],
                                   .patience = patience};
    std::copy(arenas_.begin(), arenas_.end(), all.arenas);
    return all;
  }

  /// Runs programs[r], kernels one after the other, on rank r. Ranks meet nowhere but in kernels.
  template <class Kernel>
  void run(std::vector<std::vector<Kernel>> const& programs) {
    std::vector<std::vector<launch>> all(programs.size());
    for (std::size_t r = 0; r < programs.size(); ++r)
      for (auto const& kernel : programs[r]) all[r].push_back({[kernel](context& own) { kernel(own); }});
    run_ranks(grid_, all);
  }

  void run_mixed(std::vector<std::vector<launch>> const& programs) { run_ranks(grid_, programs); }

  rondo::device::fault& report(int rank) { return reports_[static_cast<std::size_t>(rank)]; }
  rondo::device::arena_shape const& shape() const { return shape_; }
  std::uint64_t patience = 20'000'000'000;

 private:
  void start_at(int rank, rondo::device::flag number) {
    auto* const arena = arenas_[static_cast<std::size_t>(rank)];
    auto* const flags = reinterpret_cast<rondo::device::flag*>(arena);
    std::fill_n(flags, sizeof(rondo::device::board) / sizeof *flags, number);
    auto* const words = reinterpret_cast<std::uint64_t*>(arena + shape_.words_at());
    std::fill_n(words, (shape_.windows_at(Ranks) - shape_.words_at()) / sizeof *words, std::uint64_t{number} << 32);
  }

  struct piece {
    void* place;
    std::size_t bytes;
  };

  grid grid_;
  rondo::device::arena_shape shape_;
  std::vector<piece> memory_;
  std::vector<std::byte*> arenas_;
  std::array<rondo::device::fault, Ranks> reports_{};
};

}  // namespace cuda_host
