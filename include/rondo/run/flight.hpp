#pragma once

#include <rondo/run/eager.hpp>
#include <rondo/run/echoes.hpp>
#include <rondo/run/executor.hpp>
#include <rondo/run/greeting.hpp>
#include <rondo/run/job.hpp>
#include <rondo/run/marks.hpp>
#include <rondo/schedule.hpp>
#include <rondo/schedule/terms.hpp>
#include <rondo/transport.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <optional>

namespace rondo::inline v0::run {

/// A call in flight as the engine sees it.
class flight_base {
 public:
  flight_base() = default;
  flight_base(flight_base const&) = delete;
  flight_base& operator=(flight_base const&) = delete;
  virtual ~flight_base() = default;

  /// Moves what can be moved; true if anything did.
  virtual bool poll() = 0;
  virtual bool done() const noexcept = 0;
  virtual rank_t waiting_for() const noexcept = 0;
  virtual std::optional<disagreement> const& mismatch() const noexcept = 0;
  virtual void look_around() = 0;
  virtual job& work() noexcept = 0;

  /// The streams that the call uses: to and from one peer, or all of them.
  struct streams {
    bool all = true;
    rank_t to = nobody, from = nobody;
  };
  streams uses;
  bool moving = true;  ///< no older call uses a stream of this one

  std::atomic<bool> settled{false};  ///< finished or failed; written last
  std::exception_ptr error;          ///< why it failed
};

/// A job on its way through a schedule, over a transport.
template <schedule S, transport X>
class flight final : public flight_base {
 public:
  /// `work` and `memory` outlive the flight.
  flight(S s, X& transport, job& work, workspace& memory)
      : job_(work), memory_(memory), marks_(transport, work.mark, memory, work.promises) {
    if (work.chunks.empty()) work.cut(s.chunks());
    // Small messages are put together by the processor, which does not reach memory of devices.
    if (work.bytes() <= eager_bytes && !takes_device_memory(transport))
      small_.emplace(s, transport, work.chunks, work.math, marks_, work.merged, work.moves);
    else
      large_.emplace(s, transport, work.chunks, work.math, marks_, work.merged, work.moves, segments(s, work));
    if (work.echo) echoes_.emplace(s, transport, marks_);
  }

  bool poll() override {
    bool const moved = small_ ? small_->poll() : large_->poll();
    return (echoes_ && echoes_->poll()) || moved;
  }

  bool done() const noexcept override { return moved_all() && (!echoes_ || echoes_->done()); }

  rank_t waiting_for() const noexcept override {
    if (moved_all()) return echoes_->waiting_for();
    return small_ ? small_->waiting_for() : large_->waiting_for();
  }

  std::optional<disagreement> const& mismatch() const noexcept override { return stray_ ? stray_ : marks_.mismatch(); }
  void look_around() override {
    marks_.look_around();
    stray_ = stray_on_boards(memory_.shared, job_.mark, waiting_for());
  }
  job& work() noexcept override { return job_; }

 private:
  bool moved_all() const noexcept { return small_ ? small_->done() : large_->done(); }

  static int segments(S const&, job const& work) noexcept {
    if (!work.segmented) return 1;
    return static_cast<int>(std::max<std::size_t>(1, work.largest_chunk() / detail::segment_bytes));
  }

  job& job_;
  workspace const& memory_;
  marks<X> marks_;
  std::optional<disagreement> stray_;
  std::optional<eager<S, X>> small_;  // one of the two
  std::optional<executor<S, X>> large_;
  std::optional<echoes<X>> echoes_;
};

}  // namespace rondo::inline v0::run
