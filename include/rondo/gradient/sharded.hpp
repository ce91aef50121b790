#pragma once

#include <rondo/communicator.hpp>
#include <rondo/detail/bucket_pipeline.hpp>
#include <rondo/detail/checkpoint.hpp>
#include <rondo/detail/step_kernel.hpp>
#include <rondo/error.hpp>
#include <rondo/fused/finite.hpp>
#include <rondo/fused/optimizer.hpp>
#include <rondo/gradient/bucket.hpp>
#include <rondo/gradient/norm.hpp>
#include <rondo/gradient/options.hpp>
#include <rondo/gradient/parameter.hpp>
#include <rondo/gradient/report.hpp>
#include <rondo/gradient/step.hpp>
#include <rondo/ops.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <istream>
#include <ostream>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace rondo::inline v0 {

/// An optimizer whose state is spread over the ranks: stage 1 of ZeRO (Rajbhandari et al., SC 2020, section 5.1).
///
/// Gradients are put into buckets and reduced while the backward pass runs, as by a synchronizer, but each rank gets
/// the sum of its own part of a bucket only. It keeps the weights of that part in float, and the moments of the rule O;
/// it makes the step there and hands the new values to all. What travels is as much as for an all_reduce; the state of
/// the rule takes 1 / size() of the memory. A step has the same bits as that of an unsharded rule on gradients from a
/// synchronizer, if both are `ordered`. For parameters of float, float16 and bfloat16.
///
///     rondo::sharded_optimizer adam(comm, {{"w", w, dw}, {"b", b, db}}, rondo::adamw{.learning_rate = 3e-4});
///     adam.broadcast_values();
///     for (auto const& batch : batches) {
///       auto step = adam.begin({.weight = static_cast<double>(batch.size())});
///       model.backward(batch, [&](std::size_t id) { step.ready(id); });
///       step.finish();
///     }
template <transport X, optimizer O>
class sharded_optimizer {
 public:
  /// As synchronizer's. The weights are taken from the values here and in broadcast_values(); values that are changed
  /// otherwise are lost in the next step.
  sharded_optimizer(communicator<X>& comm, std::vector<parameter> parameters, O the_rule,
                    gradient_options const& options = {})
      : rule(std::move(the_rule)), squares_(comm.size()),
        pipeline_(
            comm, std::move(parameters), options, [](auto...) { return std::size_t{0}; },
            [this](std::size_t b) { return reduce(b); }) {
    for (bucket const& b : pipeline_.plan().buckets()) {
      if (b.type == real_type::float64)
        throw invalid_argument("parameter " + pipeline_.parameters()[b.slots[0].parameter].text() +
                               " cannot be sharded, because rules compute in float: use a synchronizer for it");
      std::size_t const part = b.count / static_cast<std::size_t>(comm.size());
      state_.emplace_back();
      for (auto& array : state_.back()) array.resize(part);
    }
    take_values();
  }

  sharded_optimizer(sharded_optimizer const&) = delete;
  sharded_optimizer& operator=(sharded_optimizer const&) = delete;

  /// Gives every rank the values of one.
  void broadcast_values(rank_t root = 0) {
    for (parameter const& p : pipeline_.parameters()) pipeline_.comm().broadcast(detail::value_bytes(p), root);
    take_values();
  }

  /// As synchronizer's.
  void check_values() { detail::check_same_values(pipeline_.comm(), pipeline_.parameters()); }

  /// Begins a step. Every rank must, unless it does not synchronise. Its finish() makes the step of the rule and
  /// returns when all ranks have all new values; if a gradient is infinite or NaN (report.finite), no rank changes
  /// anything.
  gradient_step<sharded_optimizer> begin(gradient_step_options const& step = {}) {
    return {*this, pipeline_.begin(step)};
  }

  /// Writes weights, moments and the number of steps, whatever the number of ranks, to the stream of one rank; that of
  /// others is ignored. Every rank must call, between two steps. Throws error on the root if the stream fails.
  void save(std::ostream& out, rank_t root = 0) {
    bool const writes = pipeline_.comm().rank() == root;
    if (writes) detail::write_checkpoint_head(out, pipeline_.parameters(), arrays, steps_);
    for_each_array([&](std::size_t b, std::size_t array, std::span<float> part, std::span<float> all) {
      pipeline_.comm().gather(part, writes ? all : std::span<float>(), root);
      if (writes) detail::write_checkpoint_array(out, pipeline_.plan().buckets()[b], array, all);
    });
  }

  /// Reads what save() has written, on as many ranks as it may be, with the same parameters; every rank reads the whole
  /// from a stream of its own. Every rank must call. With nothing changed on any rank throws invalid_argument if it was
  /// written for other parameters, error if it is damaged or ends early, and error where another rank cannot read it.
  void load(std::istream& in) {
    std::uint64_t steps = 0;
    std::vector<std::vector<float>> saved;
    std::exception_ptr problem;
    try {
      steps = detail::read_checkpoint_head(in, pipeline_.parameters(), arrays);
      saved = detail::read_checkpoint_arrays(in, pipeline_.parameters(), arrays);
    } catch (...) { problem = std::current_exception(); }
    std::uint8_t const failed = problem != nullptr;
    auto const all_failed = detail::gather_from_all(pipeline_.comm(), std::span(&failed, 1));
    if (problem) std::rethrow_exception(problem);
    if (auto const bad = std::find(all_failed.begin(), all_failed.end(), 1); bad != all_failed.end())
      throw error("rank " + std::to_string(bad - all_failed.begin()) +
                      " could not load the checkpoint and knows why: give every rank a stream of the whole",
                  static_cast<rank_t>(bad - all_failed.begin()));
    for_each_array([&](std::size_t b, std::size_t array, std::span<float> part, std::span<float> all) {
      std::fill(all.begin(), all.end(), 0.0F);
      for (bucket_slot const& slot : pipeline_.plan().buckets()[b].slots)
        std::copy_n(saved[slot.parameter * arrays + array].begin(), slot.count, all.begin() + offset(slot.offset));
      std::copy_n(all.begin() + offset(first_of_mine(b)), part.size(), part.begin());
    });
    steps_ = steps;
    for (std::size_t b = 0; b <= pipeline_.last(); ++b)
      with_narrow(b, [&]<class T>(std::type_identity<T>) {
        detail::convert_range<T, float>(values<T>(b).mine.data(), std::as_bytes(std::span(state_[b][0])).data(),
                                        state_[b][0].size());
      });
    publish();
  }

  /// Bytes of weights and moments on this rank.
  std::size_t state_bytes() const noexcept {
    std::size_t bytes = 0;
    for (auto const& of_bucket : state_)
      for (auto const& array : of_bucket) bytes += array.size() * sizeof(float);
    return bytes;
  }

  /// Steps made so far.
  std::uint64_t steps() const noexcept { return steps_; }

  bucket_plan const& plan() const noexcept { return pipeline_.plan(); }
  std::span<parameter const> parameters() const noexcept { return pipeline_.parameters(); }
  straggler_log const& stragglers() const noexcept { return pipeline_.stragglers(); }

  O rule;  ///< may be changed between two steps, alike on all ranks: a learning rate that falls

 private:
  friend class gradient_step<sharded_optimizer>;
  using pipeline = detail::bucket_pipeline<X>;
  using clock = typename pipeline::clock;

  static constexpr std::size_t arrays = 1 + O::moments;  // the weights come first

  /// What each rank says when its part of the last bucket is there.
  struct word {
    double weight, squares, own, fault;
  };

  static constexpr std::ptrdiff_t offset(std::size_t n) noexcept { return static_cast<std::ptrdiff_t>(n); }

  void ready(std::size_t id) { pipeline_.ready(id); }
  void abandon(std::uint64_t step) noexcept { pipeline_.abandon(step); }

  std::size_t first_of_mine(std::size_t b) noexcept {
    return state_[b][0].size() * static_cast<std::size_t>(pipeline_.comm().rank());
  }

  /// This rank's part of a bucket.
  std::span<float> mine(std::size_t b) noexcept {
    return pipeline_.template gradients<float>(b).subspan(first_of_mine(b), state_[b][0].size());
  }

  typename pipeline::interval reduce(std::size_t b) {
    typename pipeline::interval busy{clock::now(), {}};
    auto const me = static_cast<std::size_t>(pipeline_.comm().rank());
    pipeline_.comm().reduce_scatter(pipeline_.template gradients<float>(b), mine(b), sum, pipeline_.options().call);
    busy.end = clock::now();
    if (b == 0) squares_.clear();
    squares_.add(me, std::span<float const>(mine(b)));
    if (b == pipeline_.last()) {
      exchange(me);
      busy.end = clock::now();
    }
    return busy;
  }

  void exchange(std::size_t me) {
    word const own{static_cast<double>(static_cast<float>(pipeline_.step().weight)), squares_.of(me),
                   pipeline_.own_seconds(), pipeline_.fault()};
    auto const all = detail::gather_from_all(pipeline_.comm(), std::span(&own, 1));
    auto& words = pipeline_.words();
    total_squares_ = 0;
    for (std::size_t r = 0; r < all.size(); ++r) {
      words.weight[r] = all[r].weight;
      words.own[r] = all[r].own;
      words.fault[r] = all[r].fault;
      total_squares_ += all[r].squares;
    }
  }

  gradient_report finish() {
    if (!pipeline_.synchronizes()) return pipeline_.skip();
    auto const called = clock::now();
    pipeline_.close();
    pipeline_.thread().wait(pipeline_.last());
    typename clock::duration waited = clock::now() - called;
    gradient_report r;
    pipeline_.judge(r, total_squares_, is_finite(total_squares_));
    if (r.finite && !pipeline_.any_fault()) {
      ++steps_;
      auto const update = rule.at(steps_);
      float const divisor = static_cast<float>(pipeline_.divisor(r.clip));
      for (std::size_t b = 0; b <= pipeline_.last(); ++b) make_step(update, b, divisor);
      waited += publish();
    }
    pipeline_.end(r, called, waited);
    return r;
  }

  /// Calls f(identity of the type of the values in a bucket).
  template <class F>
  void with_narrow(std::size_t b, F&& f) {
    with_real(pipeline_.plan().buckets()[b].type, [&]<class T>(std::type_identity<T> type) {
      if constexpr (!std::is_same_v<T, double>) f(type);
    });
  }

  /// Makes the step on this rank's part of a bucket, whose values end where publish() wants them. They may overlap
  /// gradients: value i never lies behind gradient i.
  template <class Update>
  void make_step(Update const& update, std::size_t b, float divisor) noexcept {
    auto const gradients = mine(b);
    if (divisor != 1)
      detail::map_range<float, float>(reinterpret_cast<std::byte*>(gradients.data()),
                                      reinterpret_cast<std::byte const*>(gradients.data()), gradients.size(),
                                      [divisor](float g) noexcept { return g / divisor; });
    with_narrow(b, [&]<class T>(std::type_identity<T>) {
      detail::step_operands<O::moments> at{gradients.data(), 1, state_[b][0].data(), {}, values<T>(b).mine.data()};
      auto array = state_[b].begin();
      for (float*& moment : at.moments) moment = (++array)->data();
      detail::step_with<T>(detail::best_instruction_set(), update, at, gradients.size());
    });
  }

  /// The new values of a bucket, as bytes of T that lie where the gradients were.
  struct value_places {
    std::span<std::byte> all, mine;
  };
  template <class T>
  value_places values(std::size_t b) noexcept {
    auto const all = std::as_writable_bytes(pipeline_.template gradients<float>(b));
    std::size_t const part = state_[b][0].size() * sizeof(T);
    return {all.first(part * static_cast<std::size_t>(pipeline_.comm().size())),
            all.subspan(first_of_mine(b) * sizeof(T), part)};
  }

  /// The values of all parts become those of the parameters, everywhere. Returns the time of communication.
  typename clock::duration publish() {
    typename clock::duration took{};
    for (std::size_t b = 0; b <= pipeline_.last(); ++b)
      with_narrow(b, [&]<class T>(std::type_identity<T>) {
        auto const places = values<T>(b);
        auto const before = clock::now();
        pipeline_.comm().all_gather(places.mine, places.all, pipeline_.options().call);
        took += clock::now() - before;
        for (bucket_slot const& slot : pipeline_.plan().buckets()[b].slots)
          collectives::copy_bytes(detail::value_bytes(pipeline_.parameters()[slot.parameter]).data(),
                                  places.all.data() + slot.offset * sizeof(T), slot.count * sizeof(T));
      });
    return took;
  }

  /// The values of this rank's parts become its weights.
  void take_values() {
    for (std::size_t b = 0; b <= pipeline_.last(); ++b) {
      auto const all = pipeline_.template gradients<float>(b);
      std::fill(all.begin(), all.end(), 0.0F);
      with_narrow(b, [&]<class T>(std::type_identity<T>) {
        for (bucket_slot const& slot : pipeline_.plan().buckets()[b].slots)
          detail::convert_range<float, T>(reinterpret_cast<std::byte*>(all.data() + slot.offset),
                                          detail::value_bytes(pipeline_.parameters()[slot.parameter]).data(),
                                          slot.count);
      });
      std::copy_n(all.begin() + offset(first_of_mine(b)), state_[b][0].size(), state_[b][0].begin());
    }
  }

  /// Calls f(bucket, number of an array of the state, this rank's part of it, memory for the parts of all).
  template <class F>
  void for_each_array(F&& f) {
    for (std::size_t b = 0; b <= pipeline_.last(); ++b)
      for (std::size_t a = 0; a < arrays; ++a) f(b, a, std::span(state_[b][a]), pipeline_.template gradients<float>(b));
  }

  std::vector<std::array<std::vector<float>, arrays>> state_;  // by bucket
  std::uint64_t steps_ = 0;
  squares_by_rank squares_;
  double total_squares_ = 0;
  pipeline pipeline_;  // last: its thread uses all of these
};

}  // namespace rondo::inline v0
