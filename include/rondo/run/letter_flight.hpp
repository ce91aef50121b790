#pragma once

#include <rondo/run/boards.hpp>
#include <rondo/run/enclosures.hpp>
#include <rondo/run/flight.hpp>
#include <rondo/run/greeting.hpp>
#include <rondo/run/job.hpp>
#include <rondo/run/marks.hpp>

#include <cstddef>
#include <optional>

namespace rondo::inline v0::run {

/// A small all-reduce through memory that all ranks share: one hop, in which every contribution travels with a letter
/// (one-shot), whatever the buffers are. The bits are those of board_flight.
template <addressable X>
class letter_flight final : public flight_base {
 public:
  /// Is there room for a contribution of this size beside a letter?
  static bool fits(boards const& shared, std::size_t bytes) noexcept { return bytes <= shared.slot_bytes(); }

  letter_flight(X& transport, job& work, workspace& memory) noexcept
      : job_(work), memory_(memory), greeting_(transport, memory, work.mark),
        enclosed_(memory.shared, greeting_.call(), work) {}

  bool poll() override {
    bool const begins = !greeting_.sent();
    if (begins) greeting_.send([this](rank_t q, letter& l) { enclosed_.put(q, l); });
    if (!greeting_.arrived()) return begins;
    enclosed_.fold(memory_);
    greeting_.expect_another();
    enclosed_.expect_another();
    done_ = true;
    return true;
  }

  bool done() const noexcept override { return done_; }
  rank_t waiting_for() const noexcept override { return greeting_.waiting_for(); }
  std::optional<disagreement> const& mismatch() const noexcept override { return greeting_.mismatch(); }
  void look_around() override { greeting_.look_around(); }
  job& work() noexcept override { return job_; }

 private:
  job& job_;
  workspace& memory_;
  greeting<X> greeting_;
  enclosures enclosed_;
  bool done_ = false;
};

}  // namespace rondo::inline v0::run
