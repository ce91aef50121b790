#pragma once

#include <rondo/error.hpp>

#include <ATen/ATen.h>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

using tensors = std::vector<at::Tensor>;

/// Throws invalid_argument unless all are dense tensors of one type in the memory of the CPU, and there is one.
inline void check_tensors(char const* call, tensors const& given) {
  auto const refuse = [call](std::string const& why) { throw invalid_argument(std::string(call) + why); };
  if (given.empty()) refuse(" was given no tensor: give it at least one");
  for (auto const& t : given) {
    if (t.layout() != at::kStrided) refuse(" was given a sparse tensor: make it dense by to_dense()");
    if (!t.device().is_cpu())
      refuse(" was given a tensor on " + t.device().str() +
             ": the rondo backend reaches the memory of the CPU only; copy the tensor there");
    if (t.scalar_type() != given.front().scalar_type())
      refuse(std::string(" was given tensors of types ") + c10::toString(given.front().scalar_type()) + " and " +
             c10::toString(t.scalar_type()) + ": give it tensors of one type");
  }
}

/// Throws invalid_argument unless there are `count` tensors.
inline void check_count(char const* call, char const* what, std::size_t count, std::size_t given) {
  if (given != count)
    throw invalid_argument(std::string(call) + " needs " + std::to_string(count) + " " + what + ", not " +
                           std::to_string(given));
}

/// The one tensor of a list: c10d passes lists for processes with several devices.
inline tensors single(char const* call, tensors const& given) {
  check_count(call, "tensor a call", 1, given.size());
  check_tensors(call, given);
  return given;
}

/// Elements of a tensor; complex ones count as two.
inline std::size_t count_of(at::Tensor const& t) {
  return static_cast<std::size_t>(t.numel()) * (t.is_complex() ? 2 : 1);
}
inline std::vector<std::size_t> counts_of(tensors const& all) {
  std::vector<std::size_t> counts;
  for (auto const& t : all) counts.push_back(count_of(t));
  return counts;
}

/// check_tensors(), and throws invalid_argument unless they have as many elements as `counts` say together.
inline void check_sizes(char const* call, char const* what, tensors const& given,
                        std::vector<std::size_t> const& counts) {
  check_tensors(call, given);
  auto const total = [](auto const& all) { return std::accumulate(all.begin(), all.end(), std::size_t{0}); };
  check_count(call, (std::string("elements in its ") + what).c_str(), total(counts), total(counts_of(given)));
}
/// Also unless they are of that type, the one of the other tensors of the call.
inline void check_sizes(char const* call, char const* what, tensors const& given,
                        std::vector<std::size_t> const& counts, at::ScalarType type) {
  check_sizes(call, what, given, counts);
  if (given.front().scalar_type() != type)
    throw invalid_argument(std::string(call) + " was given tensors of types " + c10::toString(type) + " and " +
                           c10::toString(given.front().scalar_type()) + ": give it tensors of one type");
}

/// The elements of some tensors, one tensor behind the other: their own memory if they lie there so, else a copy.
class packed {
 public:
  explicit packed(tensors given) : parts_(std::move(given)) {
    if (parts_.empty()) return;
    std::int64_t count = 0;
    auto const* next = static_cast<char const*>(parts_.front().data_ptr());
    bool adjacent = true;
    for (auto const& t : parts_) {
      adjacent = adjacent && t.is_contiguous() && !t.is_conj() && !t.is_neg() && t.data_ptr() == next;
      next += t.nbytes();
      count += t.numel();
    }
    auto const type = parts_.front().scalar_type();
    type_ = c10::toRealValueType(type);
    count_ = static_cast<std::size_t>(count) * (c10::isComplexType(type) ? 2 : 1);
    if (!adjacent) copy_ = at::empty({count}, parts_.front().options().requires_grad(false));
    data_ = adjacent ? parts_.front().data_ptr() : copy_.data_ptr();
  }

  /// Brings the values of the tensors here.
  void load() {
    each([](at::Tensor const& part, at::Tensor const& mine) { mine.copy_(part); });
  }
  /// Gives the tensors the values that are here.
  void store() {
    each([](at::Tensor const& part, at::Tensor const& mine) { part.copy_(mine); });
  }

  template <class T>
  std::span<T> as() const noexcept {
    return {static_cast<T*>(data_), count_};
  }

  std::span<std::byte> as_bytes() const noexcept {
    return {static_cast<std::byte*>(data_), count_ * c10::elementSize(type())};
  }

  /// Of the elements; real for complex tensors.
  at::ScalarType type() const noexcept { return type_; }

 private:
  template <class F>
  void each(F const& f) {
    if (!copy_.defined()) return;
    at::AutoDispatchBelowADInplaceOrView const unrecorded;  // these copies are nothing for autograd
    std::int64_t first = 0;
    for (auto const& t : parts_) {
      f(t, copy_.narrow(0, first, t.numel()).view(t.sizes()));
      first += t.numel();
    }
  }

  tensors parts_;
  at::Tensor copy_;
  at::ScalarType type_ = at::kByte;
  void* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace rondo::inline v0::detail
