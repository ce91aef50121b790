#pragma once

#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>
#include <rondo/group.hpp>
#include <rondo/types.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace rondo::inline v0::detail {

/// What each rank says before they connect: mine() is what this one says, a text that does not start with '!'. A rank
/// where mine() throws error cannot take part; it says so instead of leaving the others waiting, and then all throw
/// connect_error, which names it: "rank 2 cannot use TCP: …" if `do_what` is "use TCP". Blocks until `deadline` at the
/// most.
template <class F>
std::vector<std::string> announce(group& ranks, std::string_view do_what, F&& mine, group::clock::time_point deadline) {
  std::string text;
  try {
    text = mine();
  } catch (error const& e) { text = text_of({"!", e.sentence()}); }
  auto texts = ranks.exchange(text, deadline);
  for (rank_t q = 0; auto const& said : texts) {
    if (said.starts_with('!'))
      throw connect_error(text_of({"rank ", q, " cannot ", do_what, ": ", said.c_str() + 1}), q);
    ++q;
  }
  return texts;
}

}  // namespace rondo::inline v0::detail
