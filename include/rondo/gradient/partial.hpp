#pragma once

#include <rondo/communicator.hpp>
#include <rondo/detail/gradient_agreement.hpp>
#include <rondo/detail/gradient_copies.hpp>
#include <rondo/detail/hash.hpp>
#include <rondo/detail/roll_call.hpp>
#include <rondo/detail/step_rules.hpp>
#include <rondo/diagnostics/straggler.hpp>
#include <rondo/error.hpp>
#include <rondo/fused/finite.hpp>
#include <rondo/gradient/bucket.hpp>
#include <rondo/gradient/norm.hpp>
#include <rondo/gradient/options.hpp>
#include <rondo/gradient/parameter.hpp>
#include <rondo/gradient/report.hpp>
#include <rondo/gradient/step.hpp>
#include <rondo/ops.hpp>
#include <rondo/registered_buffer.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// What a step with ranks that may be late came to.
struct partial_report : gradient_report {
  /// By rank, the same on all: did the gradients of this step take part? If not they will in the next one. The time of
  /// a rank that was late, in `own`, is what it had taken until then.
  std::vector<bool> in_time;
};

/// Averages the gradients of a model over the ranks that are there in time: who is late for a step takes part with what
/// it had left over, if anything, and its gradients count for the next step. A partial all-reduce (Li et al., PPoPP
/// 2020, "Taming Unbalanced Training Workloads in Deep Learning with Partial Collective Operations"), for ranks that
/// stall now and then; one that is always slower holds the others up all the same.
///
/// The first rank that finishes its backward pass tells all others so. Those that have not finished `bound` later are
/// late: a thread of theirs takes part for them. In each step the result is the sum of w g over all gradients that take
/// part, divided by the sum of their w; all ranks get the same bits, the late ones when they finish. No gradient is
/// lost, and none is more than one step old: a rank that has not begun a step is waited for, until the deadline of the
/// call. Nothing is communicated before the first rank has finished, so a synchronizer hides more where nobody is late.
/// Gradients take twice their size in memory, as the type that they are added in.
///
///     rondo::partial_synchronizer sync(comm, {{"w", w, dw}, {"b", b, db}}, std::chrono::milliseconds(20));
///     sync.broadcast_values();
///     for (auto const& batch : batches) {
///       auto step = sync.begin({.weight = static_cast<double>(batch.size())});
///       model.backward(batch, [&](std::size_t id) { step.ready(id); });
///       step.finish();
///       optimiser.step();
///     }
template <transport X>
class partial_synchronizer {
 public:
  /// As synchronizer's. Every parameter brings a gradient; `overlap` has no meaning here.
  partial_synchronizer(communicator<X>& comm, std::vector<parameter> parameters, std::chrono::milliseconds the_bound,
                       gradient_options const& options = {})
      : bound(the_bound), comm_(comm.duplicate()), parameters_(std::move(parameters)), options_(options),
        plan_(parameters_, comm_.size(), options.buckets), ready_(new std::atomic<bool>[parameters_.size()]),
        roll_(comm_), squares_(comm_.size()) {
    for (parameter const& p : parameters_)
      if (!p.gradient)
        throw invalid_argument("parameter " + p.text() +
                               " has its gradient in a bucket, which a late rank needs for an older one: give it a "
                               "gradient of its own");
    detail::hasher digest;
    digest.add(plan_.digest()).add(std::uint64_t{options.summed} << 1 | std::uint64_t{options.allow_unused});
    digest.add(std::as_bytes(std::span(&options.max_norm, 1)));
    detail::check_agreement(comm_, std::span<parameter const>(parameters_), digest.value());
    for (auto* const buckets : {&fresh_, &shared_})
      for (bucket const& b : plan_.buckets()) buckets->push_back(comm_.template allocate<std::byte>(b.bytes()));
    thread_ = std::jthread([this] { work_on(); });
  }

  /// Ends a step that is open on all ranks.
  ~partial_synchronizer() {
    if (open_) abandon(number_);
    {
      std::scoped_lock const lock(mutex_);
      leaving_ = true;
    }
    news_.notify_all();
  }

  partial_synchronizer(partial_synchronizer const&) = delete;
  partial_synchronizer& operator=(partial_synchronizer const&) = delete;

  /// As synchronizer's.
  void broadcast_values(rank_t root = 0) {
    for (parameter const& p : parameters_) comm_.broadcast(detail::value_bytes(p), root);
  }
  void check_values() { detail::check_same_values(comm_, std::span<parameter const>(parameters_)); }

  /// Begins a step. Every rank must, unless it does not synchronise; from now on the others go without this rank if it
  /// is late. Its finish() returns a partial_report.
  gradient_step<partial_synchronizer> begin(gradient_step_options const& step = {}) {
    detail::check_begin(open_, step);
    began_ = clock::now();
    if (ended_ == clock::time_point()) ended_ = began_;
    step_ = step;
    step_.weight += std::exchange(saved_weight_, 0.0);
    if (step.synchronize) {
      for (std::size_t id = 0; id < parameters_.size(); ++id) ready_[id].store(false, std::memory_order_relaxed);
      std::scoped_lock const lock(mutex_);
      if (error_) std::rethrow_exception(error_);
      roll_.begin(carried_weight_, bound);
      reducing_ = true;
      news_.notify_all();
    }
    open_ = true;
    return {*this, ++number_};
  }

  /// What this rank's gradient of a parameter, times its weight, adds to the next step because it was late for the last
  /// one; empty if it was not. Valid until the next begin(). Throws invalid_argument for another type than sum_type().
  template <real T>
  std::span<T const> carried(std::size_t id) const {
    parameter const& p = parameters_[id];
    if (sum_type(p.type) != real_type_of<T>)
      throw invalid_argument("gradients of parameter " + p.text() + " are added as " +
                             std::string(to_string(sum_type(p.type))) + ": ask for that type");
    if (!carries_) return {};
    return {reinterpret_cast<T const*>(place(shared_, id)), p.count};
  }

  bucket_plan const& plan() const noexcept { return plan_; }
  std::span<parameter const> parameters() const noexcept { return parameters_; }

  /// Who was late in the steps so far.
  straggler_log const& stragglers() const noexcept { return stragglers_; }

  /// How long those who have finished wait for the rest. May be changed between two steps, alike on all ranks: with an
  /// hour in the last step before a checkpoint nothing is left over.
  std::chrono::milliseconds bound;

 private:
  friend class gradient_step<partial_synchronizer>;
  using clock = std::chrono::steady_clock;
  using memory = std::vector<registered_buffer<std::byte>>;  // by bucket

  void ready(std::size_t id) {
    detail::check_open(open_);
    detail::check_number(id, parameters_.size());
    if (!step_.synchronize) return;
    if (ready_[id].exchange(true, std::memory_order_relaxed)) detail::refuse_second(parameters_[id]);
    fill(id);
  }

  void abandon(std::uint64_t step) noexcept {
    if (open_ && step == number_ && step_.synchronize)
      comm_.abort("rank " + std::to_string(comm_.rank()) + " gave up a step before it was finished, and knows why");
  }

  partial_report finish() {
    detail::check_open(open_);
    partial_report r;
    auto const called = clock::now();
    r.compute = called - began_;
    if (!step_.synchronize) {
      r.weight = saved_weight_ = step_.weight;
      open_ = false;
      return r;
    }
    close();
    bool const in_time = arrive();
    auto const before = clock::now();
    {
      std::unique_lock lock(mutex_);
      news_.wait(lock, [&] { return !reducing_; });
      if (error_) std::rethrow_exception(error_);
    }
    r.exposed = clock::now() - before;
    take_result(r);
    carries_ = !in_time;
    carried_weight_ = in_time ? 0 : step_.weight;
    if (carries_) std::swap(fresh_, shared_);
    open_ = false;
    if (busy_from_ < called) r.hidden = std::min(ended_, called) - busy_from_;
    r.update = clock::now() - called - r.exposed;
    return r;
  }

  /// What is left is not coming.
  void close() {
    for (std::size_t id = 0; id < parameters_.size(); ++id) {
      if (ready_[id].load(std::memory_order_relaxed)) continue;
      if (step_.weight != 0 && !options_.allow_unused) detail::complain_about_missing(parameters_[id], comm_.rank());
      clear(id);
    }
  }

  /// The gradients of this rank are there. Are they in time?
  bool arrive() {
    if (!roll_.arrive()) return false;
    if (carries_)
      for (std::size_t b = 0; b < shared_.size(); ++b)
        with_sums(b, [&]<class A>(std::type_identity<A>) {
          auto const sums = values<A>(shared_, b);
          auto const more = values<A>(fresh_, b);
          for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += more[i];
        });
    else
      std::swap(fresh_, shared_);
    roll_.enter(step_.weight);
    return true;
  }

  /// On the thread: takes part in one step after the other.
  void work_on() {
    std::unique_lock lock(mutex_);
    for (;;) {
      news_.wait(lock, [&] { return leaving_ || reducing_; });
      if (!reducing_) return;
      lock.unlock();
      std::exception_ptr error;
      try {
        reduce();
      } catch (...) { error = std::current_exception(); }
      lock.lock();
      error_ = error;
      reducing_ = false;
      news_.notify_all();
    }
  }

  void reduce() {
    bool const here = roll_.hold(ended_);
    busy_from_ = clock::now();
    squares_.clear();
    for (std::size_t b = 0; b < shared_.size(); ++b)
      with_sums(b, [&]<class A>(std::type_identity<A>) {
        auto const sums = values<A>(shared_, b);
        if (!here && !carries_) std::fill(sums.begin(), sums.end(), A(0));
        comm_.all_reduce(sums, sum, options_.call);
        squares_.add(std::span<A const>(sums));
      });
    ended_ = clock::now();
  }

  /// Divides the sums, and gives them to the parameters.
  void take_result(partial_report& r) {
    for (auto const& word : roll_.words()) {
      r.weight += word.weight;
      r.own.emplace_back(word.own);
      r.in_time.push_back(word.here != 0);
    }
    double const divisor = r.weight == 0 ? 1 : r.weight, total = squares_.total();
    detail::judge(r, total, is_finite(total) || all_finite(), divisor, options_.max_norm);
    detail::name_slowest(r, stragglers_);
    for (std::size_t id = 0; id < parameters_.size(); ++id)
      detail::unpack_gradient(parameters_[id], divisor / r.clip, place(shared_, id));
    for (auto const& b : shared_) r.bytes += b.size();
  }

  /// Squares of doubles overflow where the values do not.
  bool all_finite() {
    bool all = true;
    for (std::size_t b = 0; b < shared_.size(); ++b)
      with_sums(b, [&]<class A>(std::type_identity<A>) {
        all = all && !found_non_finite(std::span<A const>(values<A>(shared_, b)));
      });
    return all;
  }

  /// Calls f(identity of the type that a bucket is added in).
  template <class F>
  void with_sums(std::size_t b, F&& f) {
    if (plan_.buckets()[b].type == real_type::float64) return f(std::type_identity<double>());
    f(std::type_identity<float>());
  }

  template <class A>
  std::span<A> values(memory& all, std::size_t b) noexcept {
    return {reinterpret_cast<A*>(all[b].data()), plan_.buckets()[b].count};
  }

  template <class M>
  auto* place(M& all, std::size_t id) const noexcept {
    auto const [b, slot] = plan_.of(id);
    return all[b].data() + plan_.buckets()[b].slots[slot].offset * size_of(sum_type(parameters_[id].type));
  }

  /// Loss scales are taken off here, because they may change before a gradient that is late is added.
  void fill(std::size_t id) {
    if (step_.weight == 0) return clear(id);
    detail::pack_gradient(parameters_[id], (options_.summed ? 1.0 : step_.weight) / step_.loss_scale,
                          place(fresh_, id));
  }

  void clear(std::size_t id) {
    std::fill_n(place(fresh_, id), parameters_[id].count * size_of(sum_type(parameters_[id].type)), std::byte{0});
  }

  communicator<X> comm_;
  std::vector<parameter> parameters_;
  gradient_options options_;
  bucket_plan plan_;
  std::unique_ptr<std::atomic<bool>[]> ready_;  // by parameter
  memory fresh_;                                // the gradients of the step
  memory shared_;         // what takes part in the next reduction; its result; between two steps what is left over
  bool carries_ = false;  // something is left over
  double carried_weight_ = 0, saved_weight_ = 0;  // saved: of steps that did not synchronise
  gradient_step_options step_;
  bool open_ = false;
  std::uint64_t number_ = 0;  // of the step that is open, or was last
  clock::time_point began_{}, busy_from_{}, ended_{};
  detail::roll_call<X> roll_;
  squares_by_rank squares_;
  straggler_log stragglers_;

  std::mutex mutex_;
  std::condition_variable news_;
  bool reducing_ = false, leaving_ = false;
  std::exception_ptr error_;
  std::jthread thread_;  // last: it uses all of these
};

}  // namespace rondo::inline v0
