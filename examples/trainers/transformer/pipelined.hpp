#pragma once

#include "stage.hpp"
#include "text.hpp"
#include <rondo/pipeline/channel.hpp>
#include <rondo/pipeline/one_f_one_b.hpp>

#include <cstdint>
#include <functional>
#include <span>

namespace transformer {

/// One stage of a pipeline, and the channels to its neighbours.
template <class T, class X>
class pipelined {
 public:
  /// Every microbatch has `columns` positions. `ranks` must outlive this.
  pipelined(rondo::communicator<X>& ranks, config const& c, std::uint64_t seed, int microbatches, std::size_t columns)
      : me_(ranks.rank()), schedule_{ranks.size(), microbatches}, net_(c, seed, me_, ranks.size()), width_(c.width),
        activations_(ranks, before(ranks), behind(ranks), columns * static_cast<std::size_t>(c.width)),
        slopes_(ranks, behind(ranks), before(ranks), columns * static_cast<std::size_t>(c.width)) {}

  stage<T>& net() noexcept { return net_; }

  /// Makes both passes of all microbatches, and adds to the gradient; calls ready(tensor) when that of a tensor is
  /// complete. Returns the loss on the last stage, summed over all positions, and 0 on others.
  T run(std::span<sequences const> microbatches, std::function<void(std::size_t)> const& ready) {
    T loss = 0;
    activations_.expect(schedule_.microbatches);
    slopes_.expect(schedule_.microbatches);
    for (int i = 0; i < schedule_.steps(); ++i) {
      auto const step = schedule_.at(me_, i);
      int const slot = step.microbatch % schedule_.kept(me_);
      if (step.what == rondo::pass::forward) {
        auto const& batch = microbatches[static_cast<std::size_t>(step.microbatch)];
        send(activations_, net_.forward(slot, batch, columns(activations_.receive()), loss));
      } else {
        auto const& told = schedule_.completes_gradients(step) ? ready : nobody_;
        send(slopes_, net_.backward(slot, columns(slopes_.receive()), told));
      }
    }
    return loss;
  }

 private:
  using channel = rondo::channel<X, T>;

  static rondo::rank_t before(rondo::communicator<X>& ranks) {
    return ranks.rank() == 0 ? rondo::nobody : ranks.rank() - 1;
  }
  static rondo::rank_t behind(rondo::communicator<X>& ranks) {
    return ranks.rank() + 1 == ranks.size() ? rondo::nobody : ranks.rank() + 1;
  }

  matrix<T> columns(std::span<T const> message) const {
    return Eigen::Map<matrix<T> const>(message.data(), width_, std::ssize(message) / width_);
  }
  static void send(channel& to, matrix<T> const& x) { to.send({x.data(), static_cast<std::size_t>(x.size())}); }

  int me_;
  rondo::one_f_one_b schedule_;
  stage<T> net_;
  Eigen::Index width_;
  channel activations_, slopes_;
  std::function<void(std::size_t)> nobody_ = [](std::size_t) {};
};

}  // namespace transformer
