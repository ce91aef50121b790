#pragma once

#include <rondo/adapters/torch/lane.hpp>
#include <rondo/error.hpp>

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>
#include <chrono>
#include <exception>
#include <string>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// The handle of a call. Its future is completed on the thread that did the work, with the list of the outputs; what is
/// hung on it runs there, and may start and wait for further calls.
class torch_work final : public c10d::Work {
 public:
  torch_work(int rank, c10d::OpType type, std::vector<at::Tensor> outputs)
      : Work(rank, type), outputs_(std::move(outputs)),
        future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {}

  /// Makes the call, and completes the handle with its outcome. `source`: whose message a receive has got.
  template <class Call>
  void run(Call const& call, rank_t source = nobody) {
    source_ = source;
    std::exception_ptr wrong;
    try {
      call();
    } catch (deadline_exceeded const& e) {
      wrong = std::make_exception_ptr(deadline_exceeded(
          std::string(e.sentence()) + "; if that rank is only slow, give the group a longer timeout than this one",
          e.rank()));
    } catch (...) { wrong = std::current_exception(); }
    if (wrong)
      future_->setError(wrong);
    else
      future_->markCompleted(at::IValue(outputs_));
    finish(wrong);
  }

  bool wait(std::chrono::milliseconds timeout) override {
    lane::make_way([this] { return isCompleted(); });
    return Work::wait(timeout);
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }
  std::vector<at::Tensor> result() override { return outputs_; }
  int sourceRank() const override { return source_; }

 private:
  std::vector<at::Tensor> outputs_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
  rank_t source_ = nobody;
};

}  // namespace rondo::inline v0::detail
