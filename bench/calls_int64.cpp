#include "calls_typed.hpp"

#include <cstdint>

namespace rondo::bench {

template void perform_reduction<std::int64_t>(comm&, call const&, shape const&, std::int64_t const*, std::int64_t*);
template void perform_reduction<std::uint64_t>(comm&, call const&, shape const&, std::uint64_t const*, std::uint64_t*);

}  // namespace rondo::bench
