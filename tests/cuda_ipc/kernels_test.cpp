#include "../cuda_host/host_context.hpp"
#include "worlds.hpp"
#include <rondo/cuda/one_shot.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rondo::testing {
namespace {

using namespace cuda_ipc_test;
/// A shape with little memory.
constexpr device::arena_shape small_shape{.words = 24, .window_bytes = 65536, .tile_packs = 4, .slots = 2, .blocks = 8};

constexpr std::size_t count = 9001;  // several windows

std::uint32_t value(int rank, int launch, std::size_t i) {
  return static_cast<std::uint32_t>(i * 2654435761U) + static_cast<std::uint32_t>(rank * 101 + launch * 7);
}

/// Where the kernels of this rank, which are threads of the processor here, find memory of a device.
template <class T>
T* addressed(options_type const& o, T* p, std::size_t bytes) {
  auto* const place = reinterpret_cast<std::byte*>(p);
  return reinterpret_cast<T*>(o.runtime.inside().real(place, bytes, o.runtime.inside().physical(o.device), true));
}

/// One kernel, launched on a stream several times as a graph would: nothing that it counts is known to the host.
template <int Ranks>
void replay(transport_type& x, options_type const& o) {
  device::fault report;
  device::link<Ranks> ranks{.rank = x.rank(),
                            .arenas = {},
                            .shape = small_shape,
                            .report = &report,
                            .patience = std::uint64_t{20'000'000'000}};
  for (rank_t q = 0; q < Ranks; ++q) ranks.arenas[q] = addressed(o, x.arena(q).data(), x.arena(q).size());
  device_buffer const data(o.runtime, count * sizeof(std::uint32_t));
  auto* const place = addressed(o, reinterpret_cast<std::uint32_t*>(data.all().data()), data.all().size());
  device::one_shot<Ranks, std::uint32_t> const kernel{ranks, place, place, count};
  std::vector<std::uint32_t> values(count);
  for (int launch = 0; launch < 4; ++launch) {
    for (std::size_t i = 0; i < count; ++i) values[i] = value(x.rank(), launch, i);
    data.put(std::as_bytes(std::span(values)));
    o.runtime.inside().default_stream.enqueue([&] {
      cuda_host::run_rank({}, {{[&](cuda_host::context& own) { kernel(own); }}}, static_cast<unsigned>(x.rank()));
    });
    data.get(std::as_writable_bytes(std::span(values)));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t sum = 0;
      for (int q = 0; q < Ranks; ++q) sum += value(q, launch, i);
      wrong += values[i] != sum;
    }
    EXPECT_EQ(wrong, 0u) << "launch " << launch << " of rank " << x.rank();
  }
  EXPECT_EQ(report.raised, device::fault::none);
}

template <int Ranks>
void over(std::vector<options_type> places) {
  auto const groups = in_process_group::make(Ranks);
  for (auto& o : places) {
    o.arena_bytes = small_shape.bytes(Ranks);
    o.device = o.runtime.current();
  }
  on_ranks(Ranks, [&](rank_t r) {
    auto const i = static_cast<std::size_t>(r);
    auto x = transport_type::connect(groups[i], places[i]);
    replay<Ranks>(x, places[i]);
  });
  for (auto const& o : places) EXPECT_EQ(o.runtime.inside().faults(), std::vector<std::string>{});
}

TEST(cuda_ipc_kernels, fold_over_arenas_however_they_are_shared) {
  over<2>(places_of(2, place::own_process));
  over<3>(places_of(3, place::own_process, {.has_files = false}));
  over<4>(places_of(4, place::own_process));
}

}  // namespace
}  // namespace rondo::testing
