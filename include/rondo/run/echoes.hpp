#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/run/marks.hpp>
#include <rondo/schedule.hpp>
#include <rondo/transport.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rondo::inline v0::run {

/// Fingerprints between ranks of which only one sends to the other.
///
/// In a call with a root a rank could otherwise finish without having heard from anyone, though the others are in
/// another call. Everybody sends at once, so this costs no round trip, only that all ranks have entered the call.
template <transport X>
class echoes {
 public:
  template <schedule S>
  echoes(S const& s, X& transport, marks<X>& marks) : marks_(marks) {
    std::vector<std::uint8_t> to(static_cast<std::size_t>(s.ranks())), from(to);
    for (int i = 0; i < s.rounds(); ++i) {
      step const now = s.at(transport.rank(), i);
      if (now.to != nobody) detail::by_rank(to, now.to) = true;
      if (now.from != nobody) detail::by_rank(from, now.from) = true;
    }
    for (rank_t q = 0; q < s.ranks(); ++q) {
      if (detail::by_rank(from, q) && !detail::by_rank(to, q)) unsent_.push_back(q);
      if (detail::by_rank(to, q) && !detail::by_rank(from, q)) unheard_.push_back(q);
    }
  }

  bool done() const noexcept { return unsent_.empty() && unheard_.empty(); }
  rank_t waiting_for() const noexcept { return unheard_.empty() ? unsent_.back() : unheard_.back(); }

  bool poll() {
    auto const settle = [](std::vector<rank_t>& ranks, auto&& settled) {
      std::size_t const before = ranks.size();
      while (!ranks.empty() && settled(ranks.back())) ranks.pop_back();
      return ranks.size() != before;
    };
    bool const sent = settle(unsent_, [this](rank_t q) { return marks_.send(q, false); });
    bool const heard = settle(unheard_, [this](rank_t q) { return marks_.receive(q); });
    return sent || heard;
  }

 private:
  marks<X>& marks_;
  std::vector<rank_t> unsent_, unheard_;
};

}  // namespace rondo::inline v0::run
