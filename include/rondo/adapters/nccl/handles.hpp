#pragma once

#include <rondo/adapters/nccl/comm.hpp>
#include <rondo/adapters/nccl/status.hpp>
#include <rondo/adapters/nccl/types.h>
#include <rondo/transports/bootstrap/hub_keeper.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unistd.h>
#include <unordered_map>
#include <utility>

namespace rondo::inline v0::nccl {

/// The communicators of this process. A handle is a number that is never given out again, so that one that was
/// destroyed is always refused; a call keeps its communicator alive while another thread destroys it.
///
/// Who ends without having destroyed a communicator leaves it in good order, as if it had done so at the end.
class handles {
 public:
  static handles& instance() {
    static handles all;
    return all;
  }

  ncclComm_t add(std::shared_ptr<comm> c) {
    std::scoped_lock const lock(mutex_);
    forget_the_parents();
    next_ += 16;
    open_.emplace(next_, std::move(c));
    return reinterpret_cast<ncclComm_t>(next_);
  }

  std::shared_ptr<comm> find(ncclComm_t handle) const {
    std::shared_lock const lock(mutex_);
    return entry(handle)->second;
  }

  std::shared_ptr<comm> remove(ncclComm_t handle) {
    std::scoped_lock const lock(mutex_);
    auto const at = entry(handle);
    auto c = at->second;
    open_.erase(at);
    return c;
  }

 private:
  using table = std::unordered_map<std::uintptr_t, std::shared_ptr<comm>>;

  handles() { detail::hub_keeper::outlive(); }
  ~handles() { forget_the_parents(); }

  /// A forked child has the objects of its parent but not their threads: to destroy them would wait for ever.
  void forget_the_parents() {
    if (std::exchange(owner_, ::getpid()) != ::getpid()) (void)new table(std::exchange(open_, {}));
  }

  table::const_iterator entry(ncclComm_t handle) const {
    auto const at = open_.find(reinterpret_cast<std::uintptr_t>(handle));
    if (at == open_.end())
      throw refusal(ncclInvalidArgument,
                    handle ? "this communicator does not exist: it was destroyed, aborted or never made"
                           : "the communicator is NULL: make it with ncclCommInitRank, and end the group that this "
                             "stands in before it is used");
    return at;
  }

  pid_t owner_ = ::getpid();
  mutable std::shared_mutex mutex_;
  std::uintptr_t next_ = 0;
  table open_;
};

}  // namespace rondo::inline v0::nccl
