#pragma once

#include <rondo/transports/bootstrap/coordinator.hpp>

#include <memory>
#include <mutex>
#include <unistd.h>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// Where coordinators go when rank 0 has destroyed its last group: they serve the ranks that have not, without holding
/// anybody up, and say farewell when the process ends.
class hub_keeper {
 public:
  static void keep(std::unique_ptr<coordinator> hub) {
    auto& keeper = instance();
    hub->retire();
    std::scoped_lock const lock(keeper.mutex_);
    keeper.forget_the_parents();
    std::erase_if(keeper.hubs_, [](auto const& h) { return h->deserted(); });
    keeper.hubs_.push_back(std::move(hub));
  }

  /// To be called before the construction of a static object that may own groups until the process ends: it is then
  /// destroyed before the keeper is.
  static void outlive() { (void)instance(); }

 private:
  static hub_keeper& instance() {
    static hub_keeper keeper;
    return keeper;
  }

  hub_keeper() = default;
  ~hub_keeper() { forget_the_parents(); }

  /// A forked child has the objects of its parent but not their threads: to destroy them would wait for ever.
  void forget_the_parents() noexcept {
    if (std::exchange(owner_, ::getpid()) == ::getpid()) return;
    for (auto& hub : hubs_) (void)hub.release();
    hubs_.clear();
  }

  pid_t owner_ = ::getpid();
  std::mutex mutex_;
  std::vector<std::unique_ptr<coordinator>> hubs_;
};

/// The deleter of a coordinator that others may still need.
struct retire_hub {
  void operator()(coordinator* hub) const { hub_keeper::keep(std::unique_ptr<coordinator>(hub)); }
};
using hub_owner = std::unique_ptr<coordinator, retire_hub>;

}  // namespace rondo::inline v0::detail
