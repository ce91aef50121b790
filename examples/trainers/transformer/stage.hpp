#pragma once

#include "block.hpp"
#include "config.hpp"
#include "embedding.hpp"
#include "head.hpp"
#include "text.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace transformer {

/// The parts of the net that one stage of a pipeline keeps: some of the blocks, the embedding if it is the first, the
/// head if it is the last. All values lie in one buffer, all gradients in another, part after part; tensors are
/// numbered in this order.
///
/// Several microbatches may be between forward() and backward(), told apart by a number, whose memory is used again.
template <class T>
class stage {
 public:
  /// Stage `number` of `stages`. The first values are those that the whole net would have.
  stage(config const& c, std::uint64_t seed, int number, int stages) {
    auto const first_of = [&](int s) { return c.blocks * s / stages; };
    std::mt19937_64 random(seed);
    auto const add = [&](bool own, std::string const& name, layout const& l) {
      std::vector<T> values(l.count());
      l.initialise(std::span(values), random);
      if (!own) return;
      parts_.push_back({name, l, values_.size(), tensors_});
      tensors_ += l.tensors().size();
      values_.insert(values_.end(), values.begin(), values.end());
    };
    embedding<T> const input(c);
    block<T> const any(c);
    head<T> const output(c);
    if (number == 0) embedding_ = input;
    if (number == stages - 1) head_ = output;
    add(embedding_.has_value(), "embedding", input.parameters());
    for (Eigen::Index i = 0; i < c.blocks; ++i) {
      bool const own = i >= first_of(number) && i < first_of(number + 1);
      if (own) blocks_.push_back(any);
      add(own, "block" + std::to_string(i), any.parameters());
    }
    add(head_.has_value(), "head", output.parameters());
    gradient_.resize(values_.size());
  }

  std::span<T> values() noexcept { return values_; }
  std::span<T const> values() const noexcept { return values_; }
  std::span<T> gradient() noexcept { return gradient_; }

  /// Calls f(name, values, gradient) for each tensor, in the order of their numbers.
  template <class F>
  void each_tensor(F&& f) {
    for (part const& p : parts_)
      for (std::size_t i = 0; i < p.shape.tensors().size(); ++i)
        f(p.name + "." + p.shape.tensors()[i].name, p.shape.flat(p.of(values()), i), p.shape.flat(p.of(gradient()), i));
  }

  /// What goes to the next stage, from what came from the one before: `x`, or the tokens if this is the first. The last
  /// stage adds the loss, summed over the positions, to `loss`, and has nothing to send.
  matrix<T> forward(int microbatch, sequences const& batch, matrix<T> x, T& loss) {
    memory& m = kept_[microbatch];
    m.tokens = batch.tokens;
    m.blocks.resize(blocks_.size());
    auto p = parts_.begin();
    if (embedding_) x = embedding_->forward((p++)->of(values_view()), m.tokens);
    for (std::size_t i = 0; i < blocks_.size(); ++i, ++p)
      x = blocks_[i].forward(p->of(values_view()), std::move(x), m.blocks[i]);
    if (!head_) return x;
    loss += head_->forward(p->of(values_view()), x, batch.next, m.head);
    return {};
  }

  /// What goes back, from what came back: the derivatives of the loss by what forward() took and returned. Adds to the
  /// gradient; calls ready(tensor) when that of a tensor is complete for this microbatch, the last part first.
  matrix<T> backward(
      int microbatch, matrix<T> d, std::function<void(std::size_t)> const& ready = [](std::size_t) {}) {
    memory const& m = kept_.at(microbatch);
    auto p = parts_.rbegin();
    auto const next = [&](auto&& back) {
      back(*p);
      for (std::size_t i = p->shape.tensors().size(); i-- > 0;) ready(p->first + i);
      ++p;
    };
    if (head_) next([&](part const& own) { d = head_->backward(own.of(values_view()), own.of(gradient()), m.head); });
    for (std::size_t i = blocks_.size(); i-- > 0;)
      next([&](part const& own) {
        d = blocks_[i].backward(own.of(values_view()), own.of(gradient()), std::move(d), m.blocks[i]);
      });
    if (!embedding_) return d;
    next([&](part const& own) { embedding_->backward(own.of(gradient()), d, m.tokens); });
    return {};
  }

 private:
  struct part {
    std::string name;
    layout shape;
    std::size_t offset, first;  // place of its first element, number of its first tensor

    template <class U>
    std::span<U> of(std::span<U> all) const noexcept {
      return all.subspan(offset, shape.count());
    }
  };
  struct memory {
    std::vector<std::uint8_t> tokens;
    std::vector<typename block<T>::memory> blocks;
    typename head<T>::memory head;
  };

  std::span<T const> values_view() const noexcept { return values_; }

  std::optional<embedding<T>> embedding_;
  std::vector<block<T>> blocks_;
  std::optional<head<T>> head_;
  std::vector<part> parts_;
  std::size_t tensors_ = 0;
  std::vector<T> values_, gradient_;
  std::map<int, memory> kept_;
};

}  // namespace transformer
