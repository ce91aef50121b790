#pragma once

#include <rondo/algorithm.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/fingerprint.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>

namespace rondo::inline v0::run {

/// A call as people write it: "broadcast(float32 x 1000, root 2, ring) as call 7". Block sizes are shown as a hash,
/// which is all that ranks tell each other about them.
[[gnu::cold]] inline std::string describe(fingerprint const& mark) {
  std::string inside;
  auto const add = [&inside](std::initializer_list<detail::text_piece> part) {
    inside += detail::text_of({inside.empty() ? "" : ", ", detail::text_of(part)});
  };
  if (mark.type[0] != '\0') add({mark.type.data(), " x ", mark.count});
  if (mark.op[0] != '\0') add({mark.op.data()});
  if (mark.root != nobody) add({"root ", mark.root});
  if (mark.shape != 0) {
    char digits[17] = {};
    char* first = digits + 16;
    for (std::uint64_t rest = mark.shape; rest != 0; rest >>= 4) *--first = "0123456789abcdef"[rest & 15];
    add({"uneven blocks #", first});
  }
  if (mark.algorithm != 0) add({to_string(static_cast<algorithm>(mark.algorithm))});
  if (mark.ordered != 0) add({"ordered"});
  auto const text = detail::text_of({to_string(static_cast<collective>(mark.collective)), "(", inside, ")"});
  return mark.sequence == 0 ? text : detail::text_of({text, " as call ", mark.sequence});
}

}  // namespace rondo::inline v0::run
