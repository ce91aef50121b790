#pragma once

#include <rondo/config.hpp>
#include <rondo/cuda/session.hpp>
#include <rondo/types.hpp>

#include <cstddef>

namespace rondo::inline v0::device {

/// A part of the present window of every rank, divided into a slice of `room` places for what each rank stores there.
/// P is what has a place, a pack for example.
template <class P, class Context, int Ranks>
class slices {
 public:
  /// The part begins `offset` bytes after the window does.
  RONDO_HD slices(session<Context, Ranks> const& s, std::size_t room, std::size_t offset = 0) noexcept
      : session_(s), room_(room), offset_(offset) {}

  /// Stores at place i of this rank's slice in the window of rank q.
  RONDO_HD void put(rank_t q, std::size_t i, P const& x) const noexcept { place(q, session_.rank(), i) = x; }

  /// The same in the windows of all other ranks.
  RONDO_HD void put_all(std::size_t i, P const& x) const noexcept {
    for (int d = 1; d < Ranks; ++d) put(session_.right(d), i, x);
  }

  /// What rank q has stored at place i of its slice in this rank's window.
  RONDO_HD P const& get(rank_t q, std::size_t i) const noexcept { return place(session_.rank(), q, i); }

  /// x[q] = the same of every rank q, which for this one is `own`.
  RONDO_HD void get_all(std::size_t i, P const& own, P (&x)[Ranks]) const noexcept {
    for (rank_t q = 0; q < Ranks; ++q) x[q] = q == session_.rank() ? own : get(q, i);
  }

 private:
  RONDO_HD P& place(rank_t at, rank_t from, std::size_t i) const noexcept {
    return reinterpret_cast<P*>(session_.window(at) + offset_)[static_cast<std::size_t>(from) * room_ + i];
  }

  session<Context, Ranks> const& session_;
  std::size_t room_;
  std::size_t offset_;
};

}  // namespace rondo::inline v0::device
