#pragma once

#include <rondo/adapters/nccl/comm.hpp>
#include <rondo/adapters/nccl/elements.hpp>
#include <rondo/algorithm.hpp>
#include <rondo/work.hpp>

#include <cstddef>
#include <limits>
#include <memory>
#include <string>

namespace rondo::inline v0::nccl {

/// One call of a communicator, as it was written down: to be made at once, or with others at the end of a group.
struct invocation {
  std::shared_ptr<comm> on{};
  collective what = collective::all_reduce;
  void const* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;  ///< elements of one rank
  ncclDataType_t type = ncclInt8;
  operation op{};
  rank_t peer = nobody;  ///< or the root
  bool sends = false;    ///< a send; a receive has the same `what`
  cudaStream_t stream = nullptr;

  void (*run)(invocation const&) = nullptr;    ///< makes the call, and returns when it is done
  work (*start)(invocation const&) = nullptr;  ///< only starts it

  bool is_message() const noexcept { return what == collective::send_receive; }
  bool is_local() const noexcept { return is_message() && peer == on->rank(); }

  /// Throws refusal for arguments that no call could accept.
  void check() const {
    on->require_open();
    auto const element = size_of(type);
    auto const ranks = static_cast<std::size_t>(on->size());
    require(count <= std::numeric_limits<std::ptrdiff_t>::max() / element / ranks, ncclInvalidArgument,
            "the count is more than memory can hold: was a negative number passed?");
    require(count == 0 || ((reads() == 0 || in) && (writes() == 0 || out)), ncclInvalidArgument,
            "a buffer is NULL although the count is not 0: pass a buffer for it");
    if (!is_message() && !rooted()) return;
    if (peer < 0 || peer >= on->size())
      throw refusal(ncclInvalidArgument, (is_message() ? "there is no rank " : "there is no root ") +
                                             std::to_string(peer) + " among " + std::to_string(on->size()) +
                                             " ranks: pass one from 0 to " + std::to_string(on->size() - 1));
  }

  /// Bytes that this rank reads at `in`, and writes at `out`.
  std::size_t reads() const noexcept {
    switch (what) {
      case collective::broadcast: return at_root() ? bytes() : 0;
      case collective::reduce_scatter: return bytes() * static_cast<std::size_t>(on->size());
      case collective::send_receive: return sends ? bytes() : 0;
      default: return bytes();
    }
  }
  std::size_t writes() const noexcept {
    switch (what) {
      case collective::reduce: return at_root() ? bytes() : 0;
      case collective::all_gather: return bytes() * static_cast<std::size_t>(on->size());
      case collective::send_receive: return sends ? 0 : bytes();
      default: return bytes();
    }
  }

  std::size_t bytes() const noexcept { return count * size_of(type); }
  bool at_root() const noexcept { return peer == on->rank(); }

 private:
  bool rooted() const noexcept { return what == collective::broadcast || what == collective::reduce; }
};

}  // namespace rondo::inline v0::nccl
