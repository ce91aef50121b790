#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/run/canonical_fold.hpp>
#include <rondo/run/flight.hpp>
#include <rondo/run/greeting.hpp>
#include <rondo/run/job.hpp>
#include <rondo/run/marks.hpp>

#include <cstddef>
#include <cstring>
#include <optional>

namespace rondo::inline v0::run {

/// A small all-reduce in one hop through shared memory: every rank writes all that it contributes to every other rank,
/// and folds what it gets.
///
/// The text of a letter where it fits there, else a slot behind it. Every rank computes the canonical tree, so all get
/// the bits that two_shot and recursive_doubling give.
template <addressable X>
class one_shot final : public flight_base {
 public:
  /// Is the call small enough?
  static bool fits(boards const& shared, std::size_t bytes) noexcept { return bytes <= shared.slot_bytes(); }

  one_shot(X& transport, job& work, workspace& memory)
      : shared_(memory.shared), job_(work), memory_(memory), greeting_(transport, memory.shared, work.mark),
        marks_(transport, work.mark, memory), bytes_(work.count * work.math.element) {}

  bool poll() override {
    bool const moved = !greeting_.sent();
    if (moved)
      greeting_.send([this](rank_t q, letter& l) {
        if (bytes_ != 0)
          std::memcpy(text(l, [&] { return shared_.slot_to(q, greeting_.call()); }), job_.source, bytes_);
      });
    if (!greeting_.arrived()) return moved;
    fold();
    done_ = true;
    return true;
  }

  bool done() const noexcept override { return done_; }
  rank_t waiting_for() const noexcept override { return greeting_.waiting_for(); }
  std::optional<disagreement> const& mismatch() const noexcept override {
    return greeting_.mismatch() ? greeting_.mismatch() : marks_.mismatch();
  }
  void look_around() override { marks_.look_around(); }
  job& work() noexcept override { return job_; }

 private:
  template <class Slot>
  std::byte* text(letter& l, Slot&& slot) const {
    return bytes_ <= l.text.size() ? l.text.data() : slot();
  }

  void fold() {
    for (rank_t q = 0; q < shared_.size(); ++q)
      detail::by_rank(memory_.sources, q) =
          q == shared_.rank()
              ? job_.source
              : text(shared_.letter_from(q, greeting_.call()), [&] { return shared_.slot_from(q, greeting_.call()); });
    canonical_fold(job_.math)(memory_.sources, job_.home, job_.count);
  }

  boards& shared_;
  job& job_;
  workspace& memory_;
  greeting<X> greeting_;
  marks<X> marks_;  // for looking around only: the fingerprints of this call are in the letters
  std::size_t bytes_;
  bool done_ = false;
};

}  // namespace rondo::inline v0::run
