#pragma once

#include <rondo/algorithm.hpp>
#include <rondo/fingerprint.hpp>

#include <array>
#include <charconv>
#include <string>

namespace rondo::inline v0::run {

/// A call as people write it: "broadcast(float32 x 1000, root 2, ring) as call 7". Block sizes are shown as a hash,
/// which is all that ranks tell each other about them.
inline std::string describe(fingerprint const& mark) {
  std::string text(to_string(static_cast<collective>(mark.collective)));
  std::string inside;
  auto const add = [&](std::string const& part) { inside += (inside.empty() ? "" : ", ") + part; };
  if (mark.type[0] != '\0') add(std::string(mark.type.data()) + " x " + std::to_string(mark.count));
  if (mark.op[0] != '\0') add(mark.op.data());
  if (mark.root != nobody) add("root " + std::to_string(mark.root));
  if (mark.shape != 0) {
    std::array<char, 16> digits;
    add("uneven blocks #" +
        std::string(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), mark.shape, 16).ptr));
  }
  if (mark.algorithm != 0) add(std::string(to_string(static_cast<algorithm>(mark.algorithm))));
  if (mark.ordered != 0) add("ordered");
  text += "(" + inside + ")";
  return mark.sequence == 0 ? text : text + " as call " + std::to_string(mark.sequence);
}

}  // namespace rondo::inline v0::run
