#include "calls_typed.hpp"

#include <cstdint>

namespace rondo::bench {

template void perform_reduction<std::int8_t>(comm&, call const&, shape const&, std::int8_t const*, std::int8_t*);
template void perform_reduction<std::uint8_t>(comm&, call const&, shape const&, std::uint8_t const*, std::uint8_t*);

}  // namespace rondo::bench
