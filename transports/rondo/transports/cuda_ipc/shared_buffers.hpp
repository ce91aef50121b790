#pragma once

#include <rondo/detail/announce.hpp>
#include <rondo/detail/by_rank.hpp>
#include <rondo/group.hpp>
#include <rondo/transports/cuda_ipc/roster.hpp>
#include <rondo/transports/cuda_ipc/runtime.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// Buffers of other ranks' devices that this rank has opened. A handle stands for a whole allocation, of which buffers
/// are parts; so each allocation is opened once, and kept open.
template <device_runtime R>
class shared_buffers {
 public:
  shared_buffers(R runtime, int device) : runtime_(std::move(runtime)), device_(device) {}

  /// See basic_cuda_ipc::share().
  std::vector<std::byte*> share(group& ranks, device_roster const& roster, std::byte* mine,
                                group::clock::time_point deadline) {
    auto const offers = announce(
        ranks, "share a buffer on its device", [&] { return offer(roster, mine); }, deadline);
    used_ = used_ || !roster.is_one_process();
    std::vector<std::byte*> all;
    announce(
        ranks, "open a buffer on another rank's device",
        [&] {
          for (rank_t q = 0; q < ranks.size(); ++q)
            all.push_back(q == ranks.rank() ? mine : place(q, roster.shares_process_with(q), by_rank(offers, q)));
          return std::string();
        },
        deadline);
    return all;
  }

  /// See basic_cuda_ipc::withdraw().
  void withdraw(group& ranks, std::byte const* mine, group::clock::time_point deadline) {
    auto const gone = announce(
        ranks, "withdraw a buffer",
        [&] {
          card c{};
          if (mine) c.allocation = runtime_.allocation_of(mine);
          return c.encode();
        },
        deadline);
    for (rank_t q = 0; q < ranks.size(); ++q) {
      auto const id = card::decode(by_rank(gone, q)).allocation.id;
      std::erase_if(opened_, [&](opened const& o) { return o.owner == q && o.allocation.id == id; });
    }
    ranks.exchange({}, deadline);  // nobody frees before all have closed
  }

  /// Has anybody opened a handle? The same on all ranks.
  bool used() const noexcept { return used_; }
  void close() noexcept { opened_.clear(); }

 private:
  /// What a rank says about its buffer.
  struct card {
    std::byte* buffer;
    device_allocation allocation;
    device_handle handle;

    std::string encode() const {
      std::string text("+");
      return text.append(reinterpret_cast<char const*>(this), sizeof *this);
    }
    static card decode(std::string const& text) {
      card c{};
      std::memcpy(&c, text.data() + 1, std::min(text.size() - 1, sizeof c));
      return c;
    }
  };

  struct opened {
    rank_t owner;
    device_allocation allocation;  ///< as its owner sees it
    std::shared_ptr<std::byte> base;
  };

  std::string offer(device_roster const& roster, std::byte* mine) const {
    card c{mine, {}, {}};
    if (mine && !roster.is_one_process()) {
      c.allocation = runtime_.allocation_of(mine);
      c.handle = runtime_.export_handle(c.allocation.base);
    }
    return c.encode();
  }

  /// Where another rank's buffer is for this one.
  std::byte* place(rank_t q, bool same_process, std::string const& offered) {
    auto const c = card::decode(offered);
    if (!c.buffer || same_process) return c.buffer;
    // What lies in the same place and is another allocation says that the old one is gone.
    std::erase_if(opened_, [&](opened const& o) {
      return o.owner == q && o.allocation.id != c.allocation.id &&
             o.allocation.base < c.allocation.base + c.allocation.bytes &&
             c.allocation.base < o.allocation.base + o.allocation.bytes;
    });
    auto found = std::find_if(opened_.begin(), opened_.end(),
                              [&](opened const& o) { return o.owner == q && o.allocation.id == c.allocation.id; });
    if (found == opened_.end())
      found = opened_.insert(
          found, {q, c.allocation, {runtime_.open_handle(device_, c.handle), [r = runtime_, d = device_](std::byte* p) {
                                      r.close_handle(d, p);
                                    }}});
    return found->base.get() + (c.buffer - c.allocation.base);
  }

  R runtime_;
  int device_;
  std::vector<opened> opened_;
  bool used_ = false;
};

}  // namespace rondo::inline v0::detail
