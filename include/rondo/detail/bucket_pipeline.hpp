#pragma once

#include <rondo/communicator.hpp>
#include <rondo/detail/bucket_thread.hpp>
#include <rondo/detail/gradient_agreement.hpp>
#include <rondo/detail/gradient_copies.hpp>
#include <rondo/detail/step_rules.hpp>
#include <rondo/diagnostics/straggler.hpp>
#include <rondo/gradient/bucket.hpp>
#include <rondo/gradient/options.hpp>
#include <rondo/gradient/parameter.hpp>
#include <rondo/gradient/report.hpp>
#include <rondo/registered_buffer.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// What ranks tell each other about themselves in a step, by rank.
struct rank_words {
  explicit rank_words(int ranks) : weight(static_cast<std::size_t>(ranks)), own(weight.size()), fault(weight.size()) {}

  std::vector<double> weight;
  std::vector<double> own;    ///< seconds, see gradient_report
  std::vector<double> fault;  ///< number of the first parameter whose gradient did not come, from 1; 0: all came
};

/// The way of gradients into buckets, one step after the other: what all reductions of gradients have in common. The
/// buckets are then handled in their order by `handle`, on a thread of the pipeline.
template <transport X>
class bucket_pipeline {
 public:
  using clock = bucket_thread::clock;
  using interval = bucket_thread::interval;

  /// Every rank must construct one; blocks until all have. `riders`: elements behind the gradients of a bucket, by its
  /// number, that of the last one, and how many parameters there are.
  bucket_pipeline(communicator<X>& comm, std::vector<parameter> parameters, gradient_options const& options,
                  std::function<std::size_t(std::size_t, std::size_t, std::size_t)> const& riders,
                  std::function<interval(std::size_t)> handle)
      : comm_(comm.duplicate()), parameters_(std::move(parameters)), options_(options),
        plan_(parameters_, comm_.size(), options.buckets), words_(comm_.size()), used_(parameters_.size()),
        thread_(plan_, std::move(handle)) {
    hasher digest;
    digest.add(plan_.digest()).add(std::uint64_t{options.summed} << 1 | std::uint64_t{options.allow_unused});
    digest.add(std::as_bytes(std::span(&options.max_norm, 1)));
    check_agreement(comm_, std::span<parameter const>(parameters_), digest.value());
    for (std::size_t b = 0; b < plan_.buckets().size(); ++b) {
      bucket const& each = plan_.buckets()[b];
      std::size_t const behind = riders(b, last(), parameters_.size()) * size_of(sum_type(each.type));
      memory_.push_back(comm_.template allocate<std::byte>(each.bytes() + behind));
    }
  }

  communicator<X>& comm() noexcept { return comm_; }
  gradient_options const& options() const noexcept { return options_; }
  bucket_plan const& plan() const noexcept { return plan_; }
  std::span<parameter const> parameters() const noexcept { return parameters_; }
  std::size_t last() const noexcept { return plan_.buckets().size() - 1; }
  straggler_log const& stragglers() const noexcept { return stragglers_; }

  /// All of a bucket, its gradients, and what rides behind them; A is its sum_type.
  template <class A>
  std::span<A> whole(std::size_t b) noexcept {
    return {reinterpret_cast<A*>(memory_[b].data()), memory_[b].size() / sizeof(A)};
  }
  template <class A>
  std::span<A> gradients(std::size_t b) noexcept {
    return whole<A>(b).first(plan_.buckets()[b].count);
  }
  template <class A>
  std::span<A> riders(std::size_t b) noexcept {
    return whole<A>(b).subspan(plan_.buckets()[b].count);
  }

  /// Where the gradient of a parameter lies in its bucket.
  std::byte* place(std::size_t id) noexcept {
    auto const [b, slot] = plan_.of(id);
    return memory_[b].data() + plan_.buckets()[b].slots[slot].offset * size_of(sum_type(parameters_[id].type));
  }

  /// Returns the number of the step.
  std::uint64_t begin(gradient_step_options const& step) {
    check_begin(open_, step);
    if (began_ == clock::time_point()) ended_ = clock::now();
    began_ = clock::now();
    step_ = step;
    step_.weight += std::exchange(saved_weight_, 0.0);
    open_ = true;
    ++number_;
    if (step.synchronize) {
      fault_ = 0;
      std::fill(used_.begin(), used_.end(), std::uint8_t{0});
      thread_.open(!options_.overlap);
    }
    return number_;
  }

  /// The gradient of a parameter is complete. From any thread; copies it where it does not lie in the bucket.
  void ready(std::size_t id) {
    check_open(open_);
    check_number(id, parameters_.size());
    if (!step_.synchronize) return;
    if (!thread_.claim(id)) refuse_second(parameters_[id]);
    used_[id] = 1;
    fill(id);
    thread_.deliver(id);
  }

  /// What is left is not coming: its place is filled with zeros. All buckets can be handled then.
  void close() {
    check_open(open_);
    for (std::size_t id = 0; id < parameters_.size(); ++id) {
      if (!thread_.claim(id)) continue;
      if (fault_ == 0 && step_.weight != 0 && !options_.allow_unused) fault_ = id + 1;
      clear(id);
      thread_.deliver(id);
    }
    thread_.release();
  }

  /// A step was dropped. If that was before its end, other ranks need not wait for their deadlines.
  void abandon(std::uint64_t step) noexcept {
    if (open_ && step == number_ && step_.synchronize)
      comm_.abort("rank " + std::to_string(comm_.rank()) + " gave up a step before it was finished, and knows why");
  }

  bucket_thread& thread() noexcept { return thread_; }
  gradient_step_options const& step() const noexcept { return step_; }
  bool synchronizes() const noexcept { return step_.synchronize; }

  /// The step of this rank alone, which communicates nothing.
  gradient_report skip() {
    check_open(open_);
    saved_weight_ = step_.weight;
    open_ = false;
    gradient_report r;
    r.weight = step_.weight;
    r.compute = clock::now() - began_;
    return r;
  }

  rank_words& words() noexcept { return words_; }

  /// What this rank has to say in a step, when all its gradients are there.
  double own_seconds() const noexcept { return std::chrono::duration<double>(thread_.complete() - ended_).count(); }
  double fault() const noexcept { return static_cast<double>(fault_); }
  std::span<std::uint8_t const> used() const noexcept { return used_; }

  double total_weight() const noexcept { return std::accumulate(words_.weight.begin(), words_.weight.end(), 0.0); }

  /// Did a gradient not come, on any rank?
  bool any_fault() const noexcept { return first_fault() != words_.fault.end(); }

  /// What reduced gradients are divided by: one number for mean, loss scale and clipping, so that they are rounded
  /// once.
  double divisor(double clip) const noexcept {
    double const weight = total_weight();
    return weight == 0 ? 1.0 : weight * step_.loss_scale / clip;
  }

  /// The norm of the mean and what follows from it. `squares`: the sum of those of the reduced gradients.
  void judge(gradient_report& r, double squares, bool finite) const noexcept {
    detail::judge(r, squares, finite, divisor(1), options_.max_norm);
  }

  /// Ends the step, all of whose buckets have been handled, and says how it went. `called`: when finish() was;
  /// `waited`: how long that has waited. Throws the same error on every rank if a gradient did not come somewhere.
  void end(gradient_report& r, clock::time_point called, clock::duration waited) {
    ended_ = thread_.busy(last()).end;
    open_ = false;
    complain();
    r.weight = total_weight();
    for (double const own : words_.own) r.own.emplace_back(own);
    name_slowest(r, stragglers_);
    for (std::size_t b = 0; b <= last(); ++b) {
      auto const busy = thread_.busy(b);
      r.bytes += memory_[b].size();
      if (busy.begin < called) r.hidden += std::min(busy.end, called) - busy.begin;
    }
    r.compute = called - began_;
    r.exposed = waited;
    r.update = clock::now() - called - waited;
  }

 private:
  void fill(std::size_t id) {
    if (step_.weight == 0)
      clear(id);
    else
      pack_gradient(parameters_[id], options_.summed ? 1.0 : step_.weight, place(id));
  }

  void clear(std::size_t id) {
    std::fill_n(place(id), parameters_[id].count * size_of(sum_type(parameters_[id].type)), std::byte{0});
  }

  auto first_fault() const noexcept {
    return std::find_if(words_.fault.begin(), words_.fault.end(), [](double f) { return f != 0; });
  }

  void complain() const {
    auto const bad = first_fault();
    if (bad == words_.fault.end()) return;
    complain_about_missing(parameters_[static_cast<std::size_t>(*bad) - 1],
                           static_cast<rank_t>(bad - words_.fault.begin()));
  }

  communicator<X> comm_;
  std::vector<parameter> parameters_;
  gradient_options options_;
  bucket_plan plan_;
  std::vector<registered_buffer<std::byte>> memory_;  // by bucket
  gradient_step_options step_;
  bool open_ = false;
  std::uint64_t number_ = 0;  // of the step that is open, or was last
  double saved_weight_ = 0;   // of steps that did not synchronise
  clock::time_point began_{}, ended_{};
  std::size_t fault_ = 0;
  rank_words words_;
  std::vector<std::uint8_t> used_;  // by parameter
  straggler_log stragglers_;
  bucket_thread thread_;  // last: it uses all of these
};

}  // namespace rondo::inline v0::detail
