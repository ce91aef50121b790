#pragma once

#include <rondo/detail/by_rank.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/group.hpp>
#include <rondo/memory.hpp>
#include <rondo/run/describe.hpp>
#include <rondo/run/flight.hpp>
#include <rondo/wait.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rondo::inline v0::run {

/// What drives the calls of one communicator, in the order in which they were made.
///
/// A blocking call on an idle engine is driven by its caller. Every other call is queued and driven by a thread that is
/// started with the first of them and sleeps while there is nothing to do. Sends and receives between two ranks
/// overtake whatever does not use the same stream in the same direction.
template <transport X>
class engine {
 public:
  using clock = group::clock;

  /// `shared`: the transport's memory is shared by all ranks.
  engine(std::shared_ptr<group> g, X transport, bool crowded, bool shared)
      : group_(std::move(g)), transport_(std::move(transport)), memory_(group_->size()), crowded_(crowded) {
    if constexpr (addressable<X>)
      if (shared) memory_.shared = boards(transport_);
  }

  /// Waits for the calls in flight, whose deadlines bound the wait.
  ~engine() {
    {
      std::scoped_lock const lock(mutex_);
      leaving_ = true;
    }
    queued_.notify_all();
    if (driver_.joinable()) driver_.join();
  }

  X const& transport() const noexcept { return transport_; }
  boards const& shared() const noexcept { return memory_.shared; }

  /// A job for a blocking call: the engine's own, whose vectors keep their memory, unless another call has it.
  class lease {
   public:
    explicit lease(engine& e) : engine_(e.spare_taken_.test_and_set(std::memory_order_acquire) ? nullptr : &e) {
      if (!engine_) other_ = std::make_unique<job>();
      if (engine_) e.spare_.reset();
    }
    ~lease() {
      if (engine_) engine_->spare_taken_.clear(std::memory_order_release);
    }
    lease(lease const&) = delete;
    lease& operator=(lease const&) = delete;
    job& operator*() const noexcept { return engine_ ? engine_->spare_ : *other_; }

   private:
    engine* engine_;
    std::unique_ptr<job> other_;
  };

  /// Runs a call to its end. `launch(X&, workspace&)` makes its flight, in place, once its number is known.
  template <class Launch>
  void execute(job& work, flight_base::streams uses, Launch&& launch) {
    auto lock = enter();
    begin(work);
    auto flight = launch(transport_, memory_);
    flight.uses = uses;
    if (queue_.empty()) {
      if (drive_alone(flight)) return finish(flight);
    }
    wait_in_queue(flight, lock);
    if (flight.error) std::rethrow_exception(flight.error);
  }

  /// Queues a call; `launch(X&, workspace&)` makes its flight and returns it. The flight must stay until it has
  /// settled.
  template <class Launch>
  void start(job& work, flight_base::streams uses, Launch&& launch) {
    auto lock = enter();
    begin(work);
    flight_base& flight = launch(transport_, memory_);
    flight.uses = uses;
    enqueue(flight);
  }

  /// Blocks until the flight has settled, or until `deadline`; true if it has.
  bool wait(flight_base const& flight, clock::time_point deadline) {
    auto lock = take();
    return sleep(flight, lock, deadline);
  }

 private:
  static constexpr int polls_between_clocks = 256;
  static constexpr std::chrono::milliseconds queue_nap{1};  // how late the driver may see a new call while it sleeps
  static constexpr std::chrono::milliseconds verdict_grace{300};  // for the group to know better who was lost

  /// The mutex, which a caller that drives its own call hands over when it sees that others want it.
  std::unique_lock<std::mutex> take() {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock()) return lock;
    callers_.fetch_add(1, std::memory_order_relaxed);
    lock.lock();
    callers_.fetch_sub(1, std::memory_order_relaxed);
    return lock;
  }

  /// Until the flight has settled, or until `deadline`; true if it has.
  bool sleep(flight_base const& flight, std::unique_lock<std::mutex>& lock, clock::time_point deadline) {
    auto const settled = [&] { return flight.settled.load(std::memory_order_relaxed); };
    bool done = true;
    ++sleepers_;
    if (deadline == clock::time_point::max())
      settled_.wait(lock, settled);
    else
      done = settled_.wait_until(lock, deadline, settled);
    --sleepers_;
    return done;
  }

  std::unique_lock<std::mutex> enter() {
    auto lock = take();
    if (group_->failed()) group_->verdict().raise();
    return lock;
  }

  void begin(job& work) {
    if (static_cast<collective>(work.mark.collective) == collective::send_receive) return;
    work.mark.sequence = ++sequence_;
    group_->entered(sequence_);
  }

  void finish(flight_base& flight) {
    job& work = flight.work();
    work.land();
    if (work.mark.sequence != 0) group_->finished(work.mark.sequence);
  }

  /// Drives the only flight until it is done; false if another caller wants the engine, and it must be queued instead.
  template <class Flight>
  bool drive_alone(Flight& flight) {
    backoff rest(crowded_);
    for (int fruitless = 1;; ++fruitless) {
      bool const moved = step(flight);
      if (flight.done()) return true;
      if (moved) {
        rest.reset();
        continue;
      }
      check_failure(flight);
      auto const nap = rest.pause();
      if (nap.count() == 0 && fruitless % polls_between_clocks != 0) continue;
      if (callers_.load(std::memory_order_relaxed) != 0 || sleepers_ != 0) return false;
      check_patience(flight);
      if (nap.count() != 0)
        transport_.wait(std::min<std::chrono::nanoseconds>(nap, flight.work().deadline() - clock::now()));
    }
  }

  /// poll(), with what a transport throws turned into the verdict of all ranks.
  template <class Flight>
  bool step(Flight& flight) {
    try {
      return flight.poll();
    } catch (peer_lost const& lost) { give_up(lost, flight); }
  }

  [[noreturn, gnu::cold]] void give_up(peer_lost const& lost, flight_base& flight) {
    auto const until = clock::now() + verdict_grace;
    while (!group_->failed() && clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    rank_t const gone = deserter(flight.work().mark.sequence, lost.rank());
    if (gone != nobody) give_up({failure::kind::peer_lost, gone, has_left(gone, flight)});
    give_up({failure::kind::peer_lost, lost.rank(),
             detail::text_of({"rank ", lost.rank(), " was lost in ", describe(flight.work().mark)})});
  }

  void check_failure(flight_base const& flight) {
    if (group_->failed()) group_->verdict().raise();
    if (auto const& wrong = flight.mismatch()) give_up(*wrong);
  }

  [[noreturn, gnu::cold]] void give_up(disagreement const& wrong) {
    auto const [low, high] = std::minmax({group_->rank(), wrong.peer});
    bool const first = group_->rank() == low;
    give_up({failure::kind::mismatch, wrong.peer,
             detail::text_of({"rank ", low, " called ", describe(first ? wrong.mine : wrong.theirs), ", but rank ",
                              high, " called ", describe(first ? wrong.theirs : wrong.mine),
                              ": make every rank call the same collectives in the same order with the same "
                              "arguments"})});
  }

  [[gnu::cold]] void check_patience(flight_base& flight) {
    rank_t const q = flight.waiting_for();
    if (flight.moving) {  // else the streams still carry an older call
      if (rank_t const gone = deserter(flight.work().mark.sequence, q);
          gone != nobody && !step(flight) && !flight.done())
        give_up({failure::kind::peer_lost, gone, has_left(gone, flight)});
      flight.look_around();
      check_failure(flight);
    }
    if (clock::now() >= flight.work().deadline())
      give_up({failure::kind::deadline, q,
               detail::text_of({"rank ", group_->rank(), " waited for rank ", q, " in ", describe(flight.work().mark),
                                " until its deadline"})});
  }

  /// A rank that has left before it took part in this collective; for a message, the one at the other end if it left.
  rank_t deserter(std::uint64_t sequence, rank_t awaited) const noexcept {
    for (rank_t q = 0; q < group_->size(); ++q)
      if (auto const last = group_->departed(q); last && (sequence != 0 ? *last < sequence : q == awaited)) return q;
    return nobody;
  }

  [[gnu::cold]] static std::string has_left(rank_t gone, flight_base& flight) {
    return detail::text_of({"rank ", gone, " has left, and ", describe(flight.work().mark), " still needs it"});
  }

  [[noreturn, gnu::cold]] void give_up(failure why) {
    group_->report(why);
    (group_->failed() ? group_->verdict() : why).raise();
  }

  void enqueue(flight_base& flight) {
    flight.work().deadline();
    queue_.push_back(&flight);
    if (!driver_.joinable()) driver_ = std::thread([this] { drive_queue(); });
    queued_.notify_one();
  }

  void wait_in_queue(flight_base& flight, std::unique_lock<std::mutex>& lock) {
    enqueue(flight);
    sleep(flight, lock, clock::time_point::max());
  }

  void drive_queue() {
    backoff rest(true);
    std::unique_lock lock(mutex_);
    for (;;) {
      queued_.wait(lock, [&] { return leaving_ || !queue_.empty(); });
      if (queue_.empty()) return;
      if (poll_queue()) {
        rest.reset();
      } else if (auto const nap = rest.pause(); nap.count() != 0) {
        for (auto* const flight : std::vector(queue_)) attempt(*flight, [&] { check_patience(*flight); });
        lock.unlock();
        transport_.wait(std::min<std::chrono::nanoseconds>(nap, queue_nap));
        lock.lock();
        continue;
      }
      if (callers_.load(std::memory_order_relaxed) != 0) {
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
      }
    }
  }

  /// Polls every queued flight whose streams no older one uses; true if anything moved.
  bool poll_queue() {
    bool moved = false, all_taken = false;
    std::vector<std::uint8_t> to(memory_.peers.size()), from(to);
    for (auto* const flight : std::vector(queue_)) {
      auto const& s = flight->uses;
      bool const blocked = all_taken || (s.all && flight != queue_.front()) ||
                           (s.to != nobody && detail::by_rank(to, s.to)) ||
                           (s.from != nobody && detail::by_rank(from, s.from));
      flight->moving = !blocked;
      if (!blocked)
        attempt(*flight, [&] {
          if (group_->failed()) group_->verdict().raise();
          moved = step(*flight) || moved;
          check_failure(*flight);
          if (!flight->done()) return;
          finish(*flight);
          settle(*flight);
          moved = true;
        });
      if (flight->settled.load(std::memory_order_relaxed)) continue;
      all_taken = all_taken || s.all;
      if (s.to != nobody) detail::by_rank(to, s.to) = true;
      if (s.from != nobody) detail::by_rank(from, s.from) = true;
    }
    return moved;
  }

  template <class F>
  void attempt(flight_base& flight, F&& f) {
    try {
      f();
    } catch (...) {
      flight.error = std::current_exception();
      settle(flight);
    }
  }

  void settle(flight_base& flight) {
    queue_.erase(std::find(queue_.begin(), queue_.end(), &flight));
    flight.settled.store(true, std::memory_order_release);
    settled_.notify_all();
  }

  std::shared_ptr<group> group_;
  X transport_;
  workspace memory_;
  bool crowded_;
  job spare_;
  std::atomic_flag spare_taken_;
  std::uint64_t sequence_ = 0;

  std::mutex mutex_;
  std::condition_variable queued_, settled_;
  std::vector<flight_base*> queue_;  // the oldest first
  std::atomic<int> callers_{0};      // threads that want the mutex
  int sleepers_ = 0;                 // threads whose call is queued, or has settled while they have yet to wake up
  bool leaving_ = false;
  std::thread driver_;  // joined by the destructor
};

}  // namespace rondo::inline v0::run
