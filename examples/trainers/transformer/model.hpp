#pragma once

#include "block.hpp"
#include "config.hpp"
#include "embedding.hpp"
#include "head.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace transformer {

/// The whole net on one rank: embedding, blocks, head. All values lie in one buffer, all gradients in another, part
/// after part; tensors are numbered in this order.
template <class T>
class model {
 public:
  model(config const& c, std::uint64_t seed) : embedding_(c), head_(c) {
    for (Eigen::Index i = 0; i < c.blocks; ++i) blocks_.emplace_back(c);
    each_part([&](std::string const&, layout const& part) {
      firsts_.push_back(firsts_.back() + part.tensors().size());
      offsets_.push_back(offsets_.back() + part.count());
    });
    values_.resize(offsets_.back());
    gradient_.resize(offsets_.back());
    std::mt19937_64 random(seed);
    std::size_t part = 0;
    each_part([&](std::string const&, layout const& l) { l.initialise(of(values(), part++), random); });
  }

  std::span<T> values() noexcept { return values_; }
  std::span<T const> values() const noexcept { return values_; }
  std::span<T> gradient() noexcept { return gradient_; }

  /// Calls f(name, values, gradient) for each tensor, in the order of their numbers.
  template <class F>
  void each_tensor(F&& f) {
    std::size_t part = 0;
    each_part([&](std::string const& name, layout const& l) {
      for (std::size_t i = 0; i < l.tensors().size(); ++i)
        f(name + "." + l.tensors()[i].name, l.flat(of(values(), part), i), l.flat(of(gradient(), part), i));
      ++part;
    });
  }

  /// The loss of some sequences, summed over their positions; `next` has the tokens that follow each of `tokens`.
  T forward(std::span<std::uint8_t const> tokens, std::span<std::uint8_t const> next) {
    tokens_.assign(tokens.begin(), tokens.end());
    kept_.resize(blocks_.size());
    matrix<T> x = embedding_.forward(of(values_view(), 0), tokens);
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      x = blocks_[i].forward(of(values_view(), i + 1), std::move(x), kept_[i]);
    return head_.forward(of(values_view(), blocks_.size() + 1), x, next, head_kept_);
  }

  /// Adds the gradient of what forward() returned last. Calls ready(tensor) when that of a tensor is complete, the last
  /// part first.
  void backward(std::function<void(std::size_t)> const& ready = [](std::size_t) {}) {
    auto const done = [&](std::size_t part) {
      for (std::size_t id = firsts_[part + 1]; id-- > firsts_[part];) ready(id);
    };
    std::size_t const last = blocks_.size() + 1;
    matrix<T> d = head_.backward(of(values_view(), last), of(gradient(), last), head_kept_);
    done(last);
    for (std::size_t i = blocks_.size(); i-- > 0; done(i + 1))
      d = blocks_[i].backward(of(values_view(), i + 1), of(gradient(), i + 1), std::move(d), kept_[i]);
    embedding_.backward(of(gradient(), 0), d, tokens_);
    done(0);
  }

 private:
  std::span<T const> values_view() const noexcept { return values_; }

  /// What belongs to a part, of all values or of the gradient.
  template <class U>
  std::span<U> of(std::span<U> all, std::size_t part) const noexcept {
    return all.subspan(offsets_[part], offsets_[part + 1] - offsets_[part]);
  }

  template <class F>
  void each_part(F&& f) const {
    f("embedding", embedding_.parameters());
    for (std::size_t i = 0; i < blocks_.size(); ++i) f("block" + std::to_string(i), blocks_[i].parameters());
    f("head", head_.parameters());
  }

  embedding<T> embedding_;
  std::vector<block<T>> blocks_;
  head<T> head_;
  std::vector<std::size_t> firsts_{0}, offsets_{0};  // number of the first tensor of a part, place of its first element
  std::vector<T> values_, gradient_;
  std::vector<std::uint8_t> tokens_;
  std::vector<typename block<T>::memory> kept_;
  typename head<T>::memory head_kept_;
};

}  // namespace transformer
