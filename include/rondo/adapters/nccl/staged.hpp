#pragma once

#include <rondo/adapters/nccl/device_memory.hpp>
#include <rondo/adapters/nccl/invocation.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>

namespace rondo::inline v0::nccl {

/// Lets a call on memory of a device go through memory of the host: fetches what it reads, and gives its result back.
/// Copies nothing for a call whose buffers the host can address.
class staged {
 public:
  /// Enqueues the copies into `call`'s new buffers; wait() before it is made.
  explicit staged(invocation& call) : call_(call), out_(call.out) {
    std::size_t const reads = call.reads(), writes = call.writes();
    bool const from_device = reads != 0 && on_device(call.in), to_device = writes != 0 && on_device(call.out);
    if (!from_device && !to_device) return;
    std::less<std::byte const*> const before;
    auto const* const in = static_cast<std::byte const*>(call.in);
    auto* const out = static_cast<std::byte*>(call.out);
    if (from_device && to_device && before(in, out + writes) && before(out, in + reads)) {  // in place
      auto const* const first = std::min<std::byte const*>(in, out, before);
      auto const* const last = std::max<std::byte const*>(in + reads, out + writes, before);
      auto* const base = in_memory_.emplace(call.on->staging(), static_cast<std::size_t>(last - first)).data();
      call.in = base + (in - first);
      call.out = base + (out - first);
    } else {
      if (from_device) call.in = in_memory_.emplace(call.on->staging(), reads).data();
      if (to_device) call.out = out_memory_.emplace(call.on->staging(), writes).data();
    }
    bytes_back_ = to_device ? writes : 0;
    if (from_device) devices->copy(const_cast<void*>(call.in), in, reads, call.stream);
  }

  /// Until all that was enqueued before the call is done, as it would be if the call were enqueued as well.
  void wait() const {
    if (devices) devices->wait(call_.stream);
  }

  /// Copies the result to where the caller wants it, and waits until it is there.
  void give_back() const {
    if (bytes_back_ == 0) return;
    devices->copy(out_, call_.out, bytes_back_, call_.stream);
    devices->wait(call_.stream);
  }

 private:
  invocation const& call_;
  void* out_;
  std::size_t bytes_back_ = 0;
  std::optional<staging_pool::lease> in_memory_, out_memory_;
};

}  // namespace rondo::inline v0::nccl
