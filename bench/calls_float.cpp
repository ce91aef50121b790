#include "calls_typed.hpp"

namespace rondo::bench {

template void perform_reduction<float>(comm&, call const&, shape const&, float const*, float*);
template void perform_reduction<double>(comm&, call const&, shape const&, double const*, double*);

}  // namespace rondo::bench
