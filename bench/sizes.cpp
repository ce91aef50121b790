#include "sizes.hpp"

#include "text.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace rondo::bench {

std::vector<std::size_t> sizes_in(size_range const& range) {
  if (range.begin > range.end)
    throw usage_error(fmt::format("The sizes begin at {} and end at {}: give -b a smaller or -e a larger size.",
                                  format_bytes(range.begin), format_bytes(range.end)));
  if (range.factor != 0 && !(range.factor > 1)) throw usage_error("The factor -f between sizes must be above 1.");
  if (range.factor != 0 && range.step != 0)
    throw usage_error("Sizes grow by a factor -f or by a step -i: give one of them.");
  double const factor = range.factor != 0 ? range.factor : 8;
  std::vector<std::size_t> sizes;
  for (std::size_t size = range.begin; size <= range.end;) {
    sizes.push_back(size);
    auto const grown =
        range.step != 0 ? size + range.step : static_cast<std::size_t>(static_cast<double>(size) * factor);
    size = std::max(grown, size + 1);
  }
  return sizes;
}

}  // namespace rondo::bench
