#pragma once

#include <rondo/detail/announce.hpp>
#include <rondo/detail/by_rank.hpp>
#include <rondo/detail/file_descriptor.hpp>
#include <rondo/detail/text.hpp>
#include <rondo/error.hpp>
#include <rondo/group.hpp>
#include <rondo/transports/cuda_ipc/options.hpp>
#include <rondo/transports/cuda_ipc/roster.hpp>
#include <rondo/transports/cuda_ipc/runtime.hpp>
#include <rondo/transports/shm/descriptors.hpp>

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rondo::inline v0::detail {

/// Memory on a device that this process has allocated, and frees.
template <device_runtime R>
struct device_block {
  R runtime;
  int device;
  device_file memory{};
  bool abandoned = false;  ///< somebody may still use it when this goes

  device_block(R r, int d) : runtime(std::move(r)), device(d) {}
  device_block(device_block const&) = delete;
  device_block& operator=(device_block const&) = delete;
  ~device_block() {
    if (!memory.data || abandoned) return;
    if (memory.file)
      runtime.unmap(memory.data, memory.bytes);
    else
      runtime.deallocate(device, memory.data);
  }
};

/// Memory on the device of every rank, of the same size, that all ranks of a host address.
template <device_runtime R>
class lent_memory {
 public:
  /// Every rank must call with the same arguments; blocks until all have. The memory is zero, and is known to be,
  /// before anybody else can open it. Where a rank cannot lend or open memory in this way, all throw connect_error.
  lent_memory(group& ranks, device_roster const& roster, cuda_ipc_options<R> const& options, device_sharing way,
              std::size_t bytes, group::clock::time_point deadline)
      : way_(way), among_processes_(!roster.is_one_process()),
        own_(std::make_shared<device_block<R>>(options.runtime, roster.device())),
        all_(static_cast<std::size_t>(ranks.size())) {
    auto const offers = announce(
        ranks, "lend memory of its device", [&] { return offer(bytes, options.stream); }, deadline);
    std::vector<std::array<file_descriptor, 1>> files(all_.size());
    if (by_files()) files = exchange_descriptors(ranks, std::array{own_->memory.file.get()}, deadline);
    try {
      announce(
          ranks, "open the memory of another rank's device",
          [&] {
            for (rank_t q = 0; q < ranks.size(); ++q)
              by_rank(all_, q) = q == ranks.rank()
                                     ? std::shared_ptr<std::byte>(own_, own_->memory.data)
                                     : open(roster.shares_process_with(q), by_rank(offers, q), by_rank(files, q)[0]);
            return std::string();
          },
          deadline);
    } catch (connect_error const&) {
      close_together(ranks, deadline);
      throw;
    }
  }

  std::byte* of(rank_t owner) const noexcept { return by_rank(all_, owner).get(); }

  /// How the ranks got at it, in a word.
  std::string_view way() const noexcept {
    return !among_processes_ ? "pointers" : way_ == device_sharing::files ? "files" : "handles";
  }

  /// Must everybody have closed it before it is freed? The same on all ranks.
  bool ends_together() const noexcept { return among_processes_ && way_ == device_sharing::handles; }

  /// Closes what belongs to others.
  void close() noexcept { all_.clear(); }

  /// close(), on all ranks before any of them goes on.
  void close_together(group& ranks, group::clock::time_point deadline) {
    close();
    ranks.exchange({}, deadline);
  }

  /// Never frees this rank's memory: somebody may still have it open.
  void abandon() noexcept { own_->abandoned = true; }

 private:
  using block_pointer = std::shared_ptr<device_block<R>>;

  bool by_files() const noexcept { return among_processes_ && way_ == device_sharing::files; }

  /// Allocates; returns where threads of this process find the block, and what other processes open it by.
  std::string offer(std::size_t bytes, typename R::stream stream) {
    auto& [data, size, file] = own_->memory;
    if (by_files())
      own_->memory = own_->runtime.allocate_file(own_->device, bytes);
    else
      data = own_->runtime.allocate(own_->device, size = bytes);
    own_->runtime.zero(data, bytes, stream);
    own_->runtime.wait(stream);
    device_handle handle{};
    if (ends_together()) handle = own_->runtime.export_handle(data);
    block_pointer const* const here = &own_;
    std::string text("+");
    text.append(reinterpret_cast<char const*>(&here), sizeof here);
    return text.append(reinterpret_cast<char const*>(handle.data()), handle.size());
  }

  std::shared_ptr<std::byte> open(bool same_process, std::string const& offered, file_descriptor const& file) const {
    R const& runtime = own_->runtime;
    int const device = own_->device;
    std::size_t const bytes = own_->memory.bytes;
    if (by_files())  // within a process too: a mapping is for one device
      return {runtime.map_file(device, file.get(), bytes), [runtime, bytes](std::byte* p) { runtime.unmap(p, bytes); }};
    if (same_process) {
      block_pointer const* there = nullptr;
      std::memcpy(&there, offered.data() + 1, sizeof there);
      return {*there, (*there)->memory.data};
    }
    device_handle handle;
    std::memcpy(handle.data(), offered.data() + 1 + sizeof(block_pointer const*), handle.size());
    return {runtime.open_handle(device, handle), [runtime, device](std::byte* p) { runtime.close_handle(device, p); }};
  }

  device_sharing way_;
  bool among_processes_;
  block_pointer own_;
  std::vector<std::shared_ptr<std::byte>> all_;  // by rank
};

}  // namespace rondo::inline v0::detail
