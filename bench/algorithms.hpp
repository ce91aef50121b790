#pragma once

#include <rondo/algorithm.hpp>

#include <string>
#include <vector>

namespace rondo::bench {

/// Every algorithm but automatic.
std::vector<algorithm> all_algorithms();

/// The algorithms with these names, or all that provide the collective for that many ranks ("all"). Throws usage_error
/// where one that was named does not.
std::vector<algorithm> algorithms_of(std::vector<std::string> const& names, collective what, int ranks,
                                     std::string_view transport = {});

}  // namespace rondo::bench
