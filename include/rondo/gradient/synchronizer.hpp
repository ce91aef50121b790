#pragma once

#include <rondo/communicator.hpp>
#include <rondo/detail/bucket_pipeline.hpp>
#include <rondo/error.hpp>
#include <rondo/fused/finite.hpp>
#include <rondo/gradient/bucket.hpp>
#include <rondo/gradient/norm.hpp>
#include <rondo/gradient/options.hpp>
#include <rondo/gradient/parameter.hpp>
#include <rondo/gradient/report.hpp>
#include <rondo/gradient/step.hpp>
#include <rondo/ops.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// A bucket as a reduction of the user's sees it: T is float, or double for parameters that are.
template <class T>
struct gradient_bucket {
  std::size_t number;                    ///< in the order of communication; the same tensors in every step
  std::span<T> values;                   ///< this rank's contribution, to be replaced by the sum over all ranks
  std::span<bucket_slot const> tensors;  ///< where they lie in `values`; zeros are behind the last
};

/// Averages the gradients of a model over all ranks, while the backward pass that computes them still runs.
///
/// Gradients travel in buckets (bucket_plan). A bucket whose tensors are all ready is reduced at once by a thread of
/// the synchronizer, on streams of its own, so that calls on the user's communicator and its own do not wait for each
/// other. Buckets are always reduced in the order of the plan, however readiness is ordered on a rank. After finish()
/// all ranks have the same bits: the sum of w g over all ranks, divided once by the sum of w, where w is the weight of
/// a rank's step and g its gradient; if gradients are `summed`, the sum of g. float16 and bfloat16 are added, and
/// travel, as float: they neither overflow nor vanish on the way, and are rounded once at the end.
///
///     rondo::synchronizer sync(comm, {{"w", w, dw}, {"b", b, db}});
///     sync.broadcast_values();
///     for (auto const& batch : batches) {
///       auto step = sync.begin({.weight = static_cast<double>(batch.size())});
///       model.backward(batch, [&](std::size_t id) { step.ready(id); });
///       step.finish();
///       optimiser.step();
///     }
template <transport X>
class synchronizer {
 public:
  /// Every rank must construct one, with the same names, types and sizes and the same options, in the same order; else
  /// all throw an invalid_argument that names the first parameter that differs. Blocks until all have.
  synchronizer(communicator<X>& comm, std::vector<parameter> parameters, gradient_options const& options = {})
      : squares_(comm.size()),
        pipeline_(comm, std::move(parameters), options, riders_of(static_cast<std::size_t>(comm.size()), options),
                  [this](std::size_t b) { return reduce(b); }) {
    used_.resize(pipeline_.parameters().size());
  }

  synchronizer(synchronizer const&) = delete;
  synchronizer& operator=(synchronizer const&) = delete;

  /// Gives every rank the values of one.
  void broadcast_values(rank_t root = 0) {
    for (parameter const& p : pipeline_.parameters()) pipeline_.comm().broadcast(detail::value_bytes(p), root);
  }

  /// Throws the same error on every rank unless all hold the same bits in all parameters; it names the first that
  /// differs.
  void check_values() { detail::check_same_values(pipeline_.comm(), pipeline_.parameters()); }

  /// Reduces buckets by hook(communicator, gradient_bucket) instead of by an all_reduce. It is called on the thread of
  /// the synchronizer, in the order of buckets, on every rank, and must leave the same bits on all. Not during a step.
  template <std::invocable<communicator<X>&, gradient_bucket<float>> Hook>
  void reduce_with(Hook hook) {
    auto const shared = std::make_shared<Hook>(std::move(hook));
    hooks_.floats = [shared](communicator<X>& comm, gradient_bucket<float> b) { (*shared)(comm, b); };
    if constexpr (std::is_invocable_v<Hook&, communicator<X>&, gradient_bucket<double>>) {
      hooks_.doubles = [shared](communicator<X>& comm, gradient_bucket<double> b) { (*shared)(comm, b); };
    } else {
      for (bucket const& b : pipeline_.plan().buckets())
        if (b.type == real_type::float64)
          throw invalid_argument("this hook does not take the double gradients of parameter " +
                                 pipeline_.parameters()[b.slots[0].parameter].text() +
                                 ": let it take a gradient_bucket<double> too");
    }
  }

  /// Begins a step. Every rank must, unless it does not synchronise.
  gradient_step<synchronizer> begin(gradient_step_options const& step = {}) { return {*this, pipeline_.begin(step)}; }

  /// The gradient of a parameter that lies in its bucket, where a backward pass adds to it or overwrites it between two
  /// steps and before ready(). Throws invalid_argument for another type than it has.
  template <real T>
  std::span<T> gradient(std::size_t id) {
    parameter const& p = pipeline_.parameters()[id];
    if (p.gradient || p.gradient_type != real_type_of<T>)
      throw invalid_argument("parameter " + p.text() + " has no gradient of type " + std::string(type_name<T>()) +
                             " in a bucket: leave its gradient out, and ask for " +
                             std::string(to_string(sum_type(p.type))));
    return {reinterpret_cast<T*>(pipeline_.place(id)), p.count};
  }

  /// How many ranks had a gradient for a parameter in the last step, if `allow_unused` is set. A gradient that no rank
  /// had is left as it was.
  std::size_t users(std::size_t id) const noexcept { return used_[id]; }

  bucket_plan const& plan() const noexcept { return pipeline_.plan(); }
  std::span<parameter const> parameters() const noexcept { return pipeline_.parameters(); }

  /// Who held the others up in the steps so far.
  straggler_log const& stragglers() const noexcept { return pipeline_.stragglers(); }

 private:
  friend class gradient_step<synchronizer>;
  using pipeline = detail::bucket_pipeline<X>;
  using clock = typename pipeline::clock;

  /// A weight for each rank rides in the first bucket, because everything is divided by their sum; what is known only
  /// when the last gradient is there rides in the last one. Each rank has an element of its own, to which all others
  /// add zero.
  static auto riders_of(std::size_t ranks, gradient_options const& options) {
    return [ranks, counts = options.allow_unused](std::size_t b, std::size_t last, std::size_t parameters) {
      return (b == 0 ? ranks : 0) + (b == last ? 2 * ranks + (counts ? parameters : 0) : 0);
    };
  }

  void ready(std::size_t id) { pipeline_.ready(id); }
  void abandon(std::uint64_t step) noexcept { pipeline_.abandon(step); }

  /// Calls f(identity of the type that a bucket is added in).
  template <class F>
  decltype(auto) with_sums(std::size_t b, F&& f) {
    if (pipeline_.plan().buckets()[b].type == real_type::float64) return f(std::type_identity<double>());
    return f(std::type_identity<float>());
  }

  typename pipeline::interval reduce(std::size_t b) {
    return with_sums(b, [&]<class A>(std::type_identity<A>) {
      if (b == 0) squares_.clear();
      write_riders<A>(b);
      typename pipeline::interval busy{clock::now(), {}};
      auto& hook = hooks_.template of<A>();
      auto const call = pipeline_.options().call;
      if (hook) {
        auto const values = pipeline_.template gradients<A>(b);
        auto const& slots = pipeline_.plan().buckets()[b].slots;
        hook(pipeline_.comm(), gradient_bucket<A>{b, values, slots});
        // A lossy hook leaves something behind the last tensor, too, which would come back with the next step.
        auto const padding = values.subspan(slots.back().offset + slots.back().count);
        std::fill(padding.begin(), padding.end(), A(0));
        if (auto const riders = pipeline_.template riders<A>(b); !riders.empty())
          pipeline_.comm().all_reduce(riders, sum, call);
      } else {
        pipeline_.comm().all_reduce(pipeline_.template whole<A>(b), sum, call);
      }
      busy.end = clock::now();
      read_riders<A>(b);
      squares_.add(std::span<A const>(pipeline_.template gradients<A>(b)));
      return busy;
    });
  }

  template <class A>
  void write_riders(std::size_t b) {
    auto riders = pipeline_.template riders<A>(b);
    auto const me = static_cast<std::size_t>(pipeline_.comm().rank()),
               n = static_cast<std::size_t>(pipeline_.comm().size());
    std::fill(riders.begin(), riders.end(), A(0));
    if (b == 0) {
      riders[me] = static_cast<A>(pipeline_.step().weight);
      riders = riders.subspan(n);
    }
    if (b != pipeline_.last()) return;
    riders[me] = static_cast<A>(pipeline_.own_seconds());
    riders[n + me] = static_cast<A>(pipeline_.fault());
    riders = riders.subspan(2 * n);
    for (std::size_t id = 0; id < riders.size(); ++id) riders[id] = static_cast<A>(pipeline_.used()[id]);
  }

  template <class A>
  void read_riders(std::size_t b) {
    auto riders = pipeline_.template riders<A>(b);
    auto& words = pipeline_.words();
    auto const take = [&](auto& to) {
      for (auto& value : to) {
        value = static_cast<std::decay_t<decltype(value)>>(riders[0]);
        riders = riders.subspan(1);
      }
    };
    if (b == 0) take(words.weight);
    if (b != pipeline_.last()) return;
    take(words.own);
    take(words.fault);
    if (pipeline_.options().allow_unused) take(used_);
  }

  gradient_report finish() {
    if (!pipeline_.synchronizes()) return pipeline_.skip();
    auto const called = clock::now();
    pipeline_.close();
    gradient_report r;
    typename clock::duration waited{};
    bool const clips = std::isfinite(pipeline_.options().max_norm);
    std::size_t const needed = clips || pipeline_.options().allow_unused ? pipeline_.last() : 0;
    for (std::size_t b = 0; b <= pipeline_.last(); ++b) {
      auto const before = clock::now();
      pipeline_.thread().wait(std::max(b, needed));
      waited += clock::now() - before;
      if (b == 0 && clips) judge(r);
      unpack(b, r.clip);
    }
    if (!clips) judge(r);
    pipeline_.end(r, called, waited);
    return r;
  }

  /// After the last bucket.
  void judge(gradient_report& r) {
    double const total = squares_.total();
    pipeline_.judge(r, total, is_finite(total) || all_finite());
  }

  /// Squares of doubles overflow where the values do not.
  bool all_finite() {
    for (std::size_t b = 0; b <= pipeline_.last(); ++b)
      if (with_sums(b, [&]<class A>(std::type_identity<A>) {
            return found_non_finite(std::span<A const>(pipeline_.template gradients<A>(b)));
          }))
        return false;
    return true;
  }

  void unpack(std::size_t b, double clip) {
    double const divisor = pipeline_.divisor(clip);
    for (bucket_slot const& slot : pipeline_.plan().buckets()[b].slots) {
      if (pipeline_.options().allow_unused && used_[slot.parameter] == 0) continue;
      detail::unpack_gradient(pipeline_.parameters()[slot.parameter], divisor, pipeline_.place(slot.parameter));
    }
  }

  struct {
    std::function<void(communicator<X>&, gradient_bucket<float>)> floats;
    std::function<void(communicator<X>&, gradient_bucket<double>)> doubles;

    template <class A>
    auto& of() noexcept {
      if constexpr (std::is_same_v<A, double>)
        return doubles;
      else
        return floats;
    }
  } hooks_;
  squares_by_rank squares_;
  std::vector<std::size_t> used_;  // ranks, by parameter
  pipeline pipeline_;              // last: its thread uses all of these
};

}  // namespace rondo::inline v0
