#include "calls_typed.hpp"
#include <rondo/float8.hpp>

namespace rondo::bench {

template void perform_reduction<float8_e4m3>(comm&, call const&, shape const&, float8_e4m3 const*, float8_e4m3*);
template void perform_reduction<float8_e5m2>(comm&, call const&, shape const&, float8_e5m2 const*, float8_e5m2*);

}  // namespace rondo::bench
