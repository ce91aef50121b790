#include "calls_typed.hpp"
#include <rondo/bfloat16.hpp>
#include <rondo/float16.hpp>

namespace rondo::bench {

template void perform_reduction<float16>(comm&, call const&, shape const&, float16 const*, float16*);
template void perform_reduction<bfloat16>(comm&, call const&, shape const&, bfloat16 const*, bfloat16*);

}  // namespace rondo::bench
