#include "calls_typed.hpp"

#include <cstdint>

namespace rondo::bench {

template void perform_reduction<std::int32_t>(comm&, call const&, shape const&, std::int32_t const*, std::int32_t*);
template void perform_reduction<std::uint32_t>(comm&, call const&, shape const&, std::uint32_t const*, std::uint32_t*);

}  // namespace rondo::bench
