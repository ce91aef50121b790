// Every kernel, for the compiler to be asked about: registers, spills, and what it makes of flags and peers' memory.
#include <rondo/cuda/all_gather.hpp>
#include <rondo/cuda/broadcast.hpp>
#include <rondo/cuda/fused/quantized.hpp>
#include <rondo/cuda/fused/rms_norm.hpp>
#include <rondo/cuda/fused/sync_and_step.hpp>
#include <rondo/cuda/fused/unscale.hpp>
#include <rondo/cuda/launch.cuh>
#include <rondo/cuda/low_latency.hpp>
#include <rondo/cuda/one_shot.hpp>
#include <rondo/cuda/reduce_scatter.hpp>
#include <rondo/cuda/ring.hpp>
#include <rondo/cuda/scheduled.hpp>
#include <rondo/cuda/two_shot.hpp>
#include <rondo/fused/adamw.hpp>
#include <rondo/fused/sgd.hpp>
#include <rondo/schedule/recursive_doubling.hpp>
#include <rondo/schedule/ring.hpp>

#include <cstddef>
#include <cstdint>

using namespace rondo;

struct halve {
  RONDO_HD float operator()(std::size_t, float value) const noexcept { return value * 0.5F; }
};

#define ENTER(...)                                                                                                     \
  template __global__ void device::detail::enter<device::__VA_ARGS__>(const __grid_constant__ device::__VA_ARGS__)

ENTER(one_shot<8, bfloat16>);
ENTER(one_shot<8, float>);
ENTER(one_shot<2, float16, avg_op>);
ENTER(two_shot<8, bfloat16>);
ENTER(two_shot<8, float, sum_op, halve, bfloat16>);
ENTER(two_shot<8, float8_e4m3, max_op>);
ENTER(two_shot<4, bfloat16, avg_op, device::unscale<4>>);
ENTER(low_latency<8, bfloat16>);
ENTER(low_latency<8, double>);
ENTER(reduce_scatter<8, bfloat16, avg_op, device::keep, float>);
ENTER(all_gather<8, bfloat16>);
ENTER(broadcast<8, bfloat16>);
ENTER(ring<8, bfloat16>);
ENTER(ring<8, bfloat16, sum_op, device::keep, bfloat16, float>);
ENTER(scheduled<8, rondo::ring::all_reduce, bfloat16>);
ENTER(scheduled<8, rondo::recursive_doubling::all_reduce, float>);
ENTER(quantized<8, bfloat16, std::int8_t>);
ENTER(quantized<8, bfloat16, float8_e4m3, avg_op>);
ENTER(rms_norm<8, bfloat16>);
ENTER(sync_and_step<8, bfloat16, bfloat16, adamw>);
ENTER(sync_and_step<8, float, bfloat16, sgd>);
